package rpc

import (
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate/headgate/cmd/internal/listen"
)

// BenchmarkCall compares small unary calls with those of plain grpc-go. The client is the same,
// and runs in this process too.
func BenchmarkCall(b *testing.B) {
	for name, open := range map[string]func(b *testing.B) string{"rpc": benchmarked, "plain": plain} {
		b.Run(name, func(b *testing.B) {
			client := dial(b, open(b), nil)
			in := wrapperspb.Bytes(make([]byte, 100))
			b.ReportAllocs()
			b.SetParallelism(16)
			b.RunParallel(func(loop *testing.PB) {
				out := new(wrapperspb.Int64Value)
				for loop.Next() {
					if err := client.Invoke(b.Context(), "/test.Service/Call", in, out); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

func benchmarked(b *testing.B) string {
	b.Helper()
	return serve(b, settings(&service{}), listen.Config{MaxConnections: 100}).at
}

// plain serves with grpc-go's defaults.
func plain(b *testing.B) string {
	b.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer()
	(&service{}).register(server)
	go func() { _ = server.Serve(socket) }()
	b.Cleanup(server.Stop)
	return socket.Addr().String()
}
