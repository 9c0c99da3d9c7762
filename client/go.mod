module github.com/headgate/headgate/client

go 1.25.0

require (
	github.com/headgate/headgate v0.1.0
	github.com/headgate/headgate/internal/proto v0.1.0
	google.golang.org/grpc v1.74.2
	google.golang.org/protobuf v1.36.6
)

require (
	golang.org/x/net v0.40.0 // indirect
	golang.org/x/sys v0.33.0 // indirect
	golang.org/x/text v0.25.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20250528174236-200df99c418a // indirect
)
