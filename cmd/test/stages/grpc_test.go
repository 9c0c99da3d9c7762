package stages

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/middleware/httplimit"
)

// called is the gRPC service. A call with the metadata "panic" panics.
type called struct {
	testgrpc.UnimplementedTestServiceServer
}

func (called) EmptyCall(ctx context.Context, _ *testgrpc.Empty) (*testgrpc.Empty, error) {
	if len(metadata.ValueFromIncomingContext(ctx, "panic")) > 0 {
		panic("as it was asked to")
	}
	return new(testgrpc.Empty), nil
}

func (called) FullDuplexCall(s testgrpc.TestService_FullDuplexCallServer) error {
	if len(metadata.ValueFromIncomingContext(s.Context(), "panic")) > 0 {
		panic("as it was asked to")
	}
	for {
		if _, err := s.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.Send(new(testgrpc.StreamingOutputCallResponse)); err != nil {
			return err
		}
	}
}

// errPanic is the answer of a server that recovers from a panic.
var errPanic = status.Error(codes.Internal, "a panic")

// recovering returns a server that recovers from panics before its other interceptors.
func recovering(unary []grpc.UnaryServerInterceptor, stream []grpc.StreamServerInterceptor) *grpc.Server {
	s := grpc.NewServer(
		grpc.ChainUnaryInterceptor(append([]grpc.UnaryServerInterceptor{
			func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (_ any, err error) {
				defer func() {
					if recover() != nil {
						err = errPanic
					}
				}()
				return next(ctx, req)
			},
		}, unary...)...),
		grpc.ChainStreamInterceptor(append([]grpc.StreamServerInterceptor{
			func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
				defer func() {
					if recover() != nil {
						err = errPanic
					}
				}()
				return next(srv, ss)
			},
		}, stream...)...))
	testgrpc.RegisterTestServiceServer(s, called{})
	return s
}

// serveCalls starts a server with the interceptors, and gives its address.
func serveCalls(t *testing.T, c *crowd) string {
	t.Helper()
	s := recovering(
		[]grpc.UnaryServerInterceptor{grpclimit.Unary(c.guard, grpclimit.Options{})},
		[]grpc.StreamServerInterceptor{grpclimit.Stream(c.guard, grpclimit.Options{})})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// serveCallsOverHTTP starts a server for net/http behind the middleware, and gives its address.
func serveCallsOverHTTP(t *testing.T, c *crowd) string {
	t.Helper()
	s := httptest.NewUnstartedServer(httplimit.New(c.guard, httplimit.Options{})(recovering(nil, nil)))
	s.Config.Protocols, s.Config.ErrorLog = protocols(2), slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// client returns a client of the server at an address.
func client(t *testing.T, at string) testgrpc.TestServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return testgrpc.NewTestServiceClient(conn)
}

// TestSlotsOfGRPC is TestSlotsOfHTTP for calls and streams.
func TestSlotsOfGRPC(t *testing.T) { slotsOfGRPC(t, inTest, serveCalls) }

// TestSlotsOfGRPCOverHTTP is TestSlotsOfGRPC for a gRPC server in the middleware for net/http.
func TestSlotsOfGRPCOverHTTP(t *testing.T) { slotsOfGRPC(t, inTest, serveCallsOverHTTP) }

func slotsOfGRPC(t *testing.T, requests int, serve func(*testing.T, *crowd) (at string)) {
	t.Helper()
	c := newCrowd(t)
	to := client(t, serve(t, c))
	panics := func(ctx context.Context) context.Context { return metadata.AppendToOutgoingContext(ctx, "panic", "1") }
	call := func(ctx context.Context) { _, _ = to.EmptyCall(ctx, new(testgrpc.Empty)) }
	stream := func(ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		s, err := to.FullDuplexCall(ctx)
		if err != nil {
			return
		}
		for range 3 {
			if s.Send(new(testgrpc.StreamingOutputCallRequest)) != nil {
				return
			}
			if _, err := s.Recv(); err != nil {
				return
			}
		}
		if ctx.Err() == nil {
			_ = s.CloseSend()
			_, _ = s.Recv()
		}
	}
	c.run(t, requests, []func(context.Context){
		call, stream,
		func(ctx context.Context) { call(panics(ctx)) },
		func(ctx context.Context) { stream(panics(ctx)) },
	})
	if c.slots.streams.Load() == 0 {
		t.Error("the stage was told of no stream")
	}
}
