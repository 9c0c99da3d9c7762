package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

func TestMain(m *testing.M) { leak.Main(m) }

// The methods of the test service.
const (
	unaryMethod    = testgrpc.TestService_EmptyCall_FullMethodName
	downloadMethod = testgrpc.TestService_StreamingOutputCall_FullMethodName
	uploadMethod   = testgrpc.TestService_StreamingInputCall_FullMethodName
	chatMethod     = testgrpc.TestService_FullDuplexCall_FullMethodName
	anyMethod      = "/grpc.testing.TestService/*"
)

// service is the service behind the guard. It counts its calls. The function called
// decides the result of each.
type service struct {
	testgrpc.UnimplementedTestServiceServer

	calls  atomic.Int64
	called func(ctx context.Context) error
}

func (s *service) call(ctx context.Context) error {
	s.calls.Add(1)
	if s.called == nil {
		return nil
	}
	return s.called(ctx)
}

func (s *service) EmptyCall(ctx context.Context, _ *testgrpc.Empty) (*testgrpc.Empty, error) {
	if err := s.call(ctx); err != nil {
		return nil, err
	}
	return &testgrpc.Empty{}, nil
}

func (s *service) StreamingOutputCall(req *testgrpc.StreamingOutputCallRequest, to testgrpc.TestService_StreamingOutputCallServer) error {
	if err := s.call(to.Context()); err != nil {
		return err
	}
	for range req.GetResponseParameters() {
		if err := to.Send(&testgrpc.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
	return nil
}

func (s *service) StreamingInputCall(from testgrpc.TestService_StreamingInputCallServer) error {
	if err := s.call(from.Context()); err != nil {
		return err
	}
	for n := int32(0); ; n++ {
		_, err := from.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return from.SendAndClose(&testgrpc.StreamingInputCallResponse{AggregatedPayloadSize: n})
		case err != nil:
			return err
		}
	}
}

func (s *service) FullDuplexCall(both testgrpc.TestService_FullDuplexCallServer) error {
	if err := s.call(both.Context()); err != nil {
		return err
	}
	for {
		_, err := both.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := both.Send(&testgrpc.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

// serve starts a server behind g on a free port and returns a client for it.
func serve(t *testing.T, g *guard.Guard, s *service, o grpclimit.Options) testgrpc.TestServiceClient {
	t.Helper()
	return dial(t, listen(t, grpc.NewServer(
		grpc.ChainUnaryInterceptor(grpclimit.Unary(g, o)), grpc.ChainStreamInterceptor(grpclimit.Stream(g, o)),
	), s))
}

// listen serves s on a free port until the test ends.
func listen(t *testing.T, server *grpc.Server, s *service) (address string) {
	t.Helper()
	testgrpc.RegisterTestServiceServer(server, s)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

func dial(t *testing.T, address string, o ...grpc.DialOption) testgrpc.TestServiceClient {
	t.Helper()
	o = append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, o...)
	conn, err := grpc.NewClient(address, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return testgrpc.NewTestServiceClient(conn)
}

// newGuard returns a guard with a store whose clock does not advance.
func newGuard(t *testing.T, c guard.Config) *guard.Guard {
	t.Helper()
	if c.Store == nil {
		store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: storetest.NewClock().Now})
		if err != nil {
			t.Fatal(err)
		}
		c.Store = store
	}
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// limited returns a token bucket rule for a method, counted by the given key parts.
func limited(t *testing.T, name, method string, l headgate.Limit, key ...string) guard.Rule {
	t.Helper()
	r := guard.Rule{
		Rule:     rule.Rule{Name: name, Match: rule.Match{Path: method}},
		Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: l}},
	}
	for _, text := range key {
		part, err := rule.ParsePart(text)
		if err != nil {
			t.Fatal(err)
		}
		r.Key = append(r.Key, part)
	}
	return r
}

// one returns a limit of one per hour.
func one() headgate.Limit { return headgate.Limit{Count: 1, Per: time.Hour} }

// with returns the context of a call with metadata.
func with(t *testing.T, pairs ...string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // The timeout ends a test that would block.
	t.Cleanup(cancel)
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

// call makes a unary call and returns its header, trailer and error.
func call(ctx context.Context, client testgrpc.TestServiceClient) (header, trailer metadata.MD, err error) {
	_, err = client.EmptyCall(ctx, &testgrpc.Empty{}, grpc.Header(&header), grpc.Trailer(&trailer))
	return header, trailer, err
}

// expect compares the code of an error.
func expect(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Fatalf("got %v (%v), want %v", got, err, want)
	}
}

// eventually polls until an effect of another goroutine is visible.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick, late := time.NewTicker(time.Millisecond), time.After(10*time.Second)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited 10 s for %s", what)
		}
	}
}
