// The clients of Connect that the middleware is tested with are a module of their own,
// so that they never reach the users of Headgate.
module github.com/headgate/headgate/cmd/test/connect

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	github.com/headgate/headgate v0.1.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1
	google.golang.org/protobuf v1.36.12
)

replace github.com/headgate/headgate => ../../..
