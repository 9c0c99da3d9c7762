package grpcpace_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/pace/adaptive"
	"github.com/headgate/headgate/internal/throttle"
	"github.com/headgate/headgate/pace/grpcpace"
)

// far is a service that refuses sheddable calls. It calls another service for the others, if it has one.
type far struct {
	service

	mu   sync.Mutex
	seen map[string]int // by class
	next testgrpc.TestServiceClient
}

func (f *far) EmptyCall(ctx context.Context, _ *testgrpc.Empty) (*testgrpc.Empty, error) {
	class := ""
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		for _, text := range md.Get(throttle.FieldCriticality) {
			class += text
		}
	}
	f.mu.Lock()
	f.seen[class]++
	f.mu.Unlock()
	if class == "sheddable" {
		return nil, status.Error(codes.Unavailable, "too much")
	}
	if f.next != nil {
		return f.next.EmptyCall(ctx, &testgrpc.Empty{})
	}
	return &testgrpc.Empty{}, nil
}

func (f *far) FullDuplexCall(testgrpc.TestService_FullDuplexCallServer) error {
	return status.Error(codes.Unavailable, "too much")
}

func (f *far) calls(class string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[class]
}

// startFar starts a service, and gives a client with interceptors.
func startFar(t *testing.T, next testgrpc.TestServiceClient) (*far, testgrpc.TestServiceClient) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, server := &far{seen: map[string]int{}, next: next}, grpc.NewServer()
	testgrpc.RegisterTestServiceServer(server, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	paced, err := grpcpace.New(grpcpace.Config{Adaptive: &adaptive.Config{}})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(paced.Unary), grpc.WithStreamInterceptor(paced.Stream))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return f, testgrpc.NewTestServiceClient(conn)
}

// TestServices: calls state their class, handlers pass it on, and most calls of a class that the service
// refuses are not made.
func TestServices(t *testing.T) {
	last, toLast := startFar(t, nil)
	first, client := startFar(t, toLast)
	critical, sheddable := throttle.WithClass(t.Context(), throttle.Critical), throttle.WithClass(t.Context(), throttle.Sheddable)
	for range 300 {
		if _, err := client.EmptyCall(critical, &testgrpc.Empty{}); err != nil {
			t.Fatal(err)
		}
		_, err := client.EmptyCall(sheddable, &testgrpc.Empty{})
		if status.Code(err) != codes.Unavailable {
			t.Fatal(err)
		}
	}
	if _, err := client.EmptyCall(t.Context(), &testgrpc.Empty{}); err != nil {
		t.Fatal(err)
	}
	if first.calls("critical") != 300 || last.calls("critical") != 300 || first.calls("") != 1 || last.calls("") != 1 {
		t.Errorf("the services get %v and %v", first.seen, last.seen)
	}
	if n := first.calls("sheddable"); n < 10 || n > 100 {
		t.Errorf("%d of 300 refused calls were made", n)
	}
}

// TestServiceStreams: streams that a service refuses are counted, and some are not made.
func TestServiceStreams(t *testing.T) {
	_, client := startFar(t, nil)
	dropped := 0
	for range 100 {
		stream, err := client.FullDuplexCall(t.Context())
		if err == nil {
			_, err = stream.Recv()
		}
		if drop, ok := errortype.As[*adaptive.DropError](err); ok {
			if drop.Class != throttle.SheddablePlus || status.Code(err) != codes.Unavailable {
				t.Errorf("the drop is %v", err)
			}
			dropped++
		}
	}
	if dropped < 40 {
		t.Errorf("%d of 100 streams were not made", dropped)
	}
}
