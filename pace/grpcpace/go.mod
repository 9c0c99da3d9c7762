module github.com/headgate/headgate/pace/grpcpace

go 1.25.0

require (
	github.com/headgate/headgate v0.1.0
	github.com/headgate/headgate/middleware/grpclimit v0.1.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20240318140521-94a12d6c2237
	google.golang.org/grpc v1.64.1
	google.golang.org/protobuf v1.33.0
)

require (
	golang.org/x/net v0.26.0 // indirect
	golang.org/x/sys v0.21.0 // indirect
	golang.org/x/text v0.16.0 // indirect
)
