package grpcpace_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/grpcpace"
)

// A provider takes two calls an hour from all instances of this program, of which
// there is one. The third would have to wait for longer than its deadline.
func Example() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(server, &service{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		server.Stop()
		<-served
	}()

	plan, err := pace.EvenPlan(2, time.Hour, 1, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	// The clock stands at the begin of an hour, so that this example always ends in one;
	// programs leave Wall out.
	wall := func() headgate.Instant { return 0 }
	quiet := slog.New(slog.DiscardHandler)
	provider, err := pace.New(pace.Config{Provider: "test", Source: pace.Static(plan), Wall: wall, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer provider.Close()

	paced, err := grpcpace.New(grpcpace.Config{Methods: map[string]*pace.Pacer{"/grpc.testing.TestService/*": provider}})
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
		grpc.WithChainUnaryInterceptor(paced.Unary), grpc.WithChainStreamInterceptor(paced.Stream))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	client := testgrpc.NewTestServiceClient(conn)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 3 {
		_, err := client.EmptyCall(ctx, &testgrpc.Empty{})
		fmt.Println(status.Code(err), errors.Is(err, pace.ErrTimeout))
	}
	// Output:
	// OK false
	// OK false
	// ResourceExhausted true
}
