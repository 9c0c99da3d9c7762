package connect_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

const (
	unary  = "/farm.v1.Field/Plough"
	stream = "/farm.v1.Field/Watch"
)

// serve gives the address of a service with one call an hour to each method, and
// counts the requests that come.
func serve(t *testing.T, requests *atomic.Int64) *httptest.Server {
	t.Helper()
	path, err := rule.ParsePart("path")
	if err != nil {
		t.Fatal(err)
	}
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Store: store, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "calls", Key: []rule.Part{path}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 1, Per: time.Hour}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(unary, connect.NewUnaryHandler(unary,
		func(context.Context, *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
			return connect.NewResponse(&emptypb.Empty{}), nil
		}, connect.WithIdempotency(connect.IdempotencyNoSideEffects)))
	mux.Handle(stream, connect.NewServerStreamHandler(stream,
		func(_ context.Context, _ *connect.Request[emptypb.Empty], s *connect.ServerStream[emptypb.Empty]) error {
			return s.Send(&emptypb.Empty{})
		}))
	limited := httplimit.New(g, httplimit.Options{})(mux)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		limited.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true // gRPC needs it.
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// A client of every protocol that Connect speaks learns that its limit is used up, and
// when to come again.
func TestClients(t *testing.T) {
	for name, options := range map[string][]connect.ClientOption{
		"connect":           nil,
		"connect with JSON": {connect.WithProtoJSON()},
		"connect by GET":    {connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)},
		"grpc":              {connect.WithGRPC()},
		"grpc-web":          {connect.WithGRPCWeb()},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			server := serve(t, &requests)
			one := connect.NewClient[emptypb.Empty, emptypb.Empty](server.Client(), server.URL+unary, options...)
			many := connect.NewClient[emptypb.Empty, emptypb.Empty](server.Client(), server.URL+stream, options...)
			callUnary := func() error {
				_, err := one.CallUnary(t.Context(), connect.NewRequest(&emptypb.Empty{}))
				return err
			}
			callStream := func() error {
				s, err := many.CallServerStream(t.Context(), connect.NewRequest(&emptypb.Empty{}))
				if err != nil {
					return err
				}
				for s.Receive() {
				}
				return errors.Join(s.Err(), s.Close())
			}
			for what, call := range map[string]func() error{"unary": callUnary, "stream": callStream} {
				if err := call(); err != nil {
					t.Fatalf("%s: the first call: %v", what, err)
				}
				refused(t, what, call())
			}
			if n := requests.Load(); n != 4 {
				t.Errorf("the clients sent %d requests, want 4", n)
			}
		})
	}
}

// A client of every protocol learns that its request is at fault: clients of gRPC take
// 400 for a fault of the server (internal).
func TestRejected(t *testing.T) {
	for name, options := range map[string][]connect.ClientOption{
		"connect":        nil,
		"connect by GET": {connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)},
		"grpc":           {connect.WithGRPC()},
		"grpc-web":       {connect.WithGRPCWeb()},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			server := serve(t, &requests)
			const twice = "/." // Two meanings: routers resolve it, services may not.
			one := connect.NewClient[emptypb.Empty, emptypb.Empty](server.Client(), server.URL+twice+unary, options...)
			many := connect.NewClient[emptypb.Empty, emptypb.Empty](server.Client(), server.URL+twice+stream, options...)
			_, err := one.CallUnary(t.Context(), connect.NewRequest(&emptypb.Empty{}))
			if code := connect.CodeOf(err); code != connect.CodeInvalidArgument {
				t.Errorf("unary: %v, want invalid_argument", err)
			}
			s, err := many.CallServerStream(t.Context(), connect.NewRequest(&emptypb.Empty{}))
			if err != nil {
				t.Fatal(err)
			}
			for s.Receive() {
			}
			if code := connect.CodeOf(s.Err()); code != connect.CodeInvalidArgument {
				t.Errorf("stream: %v, want invalid_argument", s.Err())
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// refused holds that an error says that the limit is used up, and for how long.
func refused(t *testing.T, what string, err error) {
	t.Helper()
	failure, ok := errors.AsType[*connect.Error](err)
	if !ok || failure.Code() != connect.CodeResourceExhausted {
		t.Fatalf("%s: %v, want resource_exhausted", what, err)
	}
	for _, d := range failure.Details() {
		message, err := d.Value()
		if err != nil {
			t.Fatal(err)
		}
		if info, ok := message.(*errdetails.RetryInfo); ok {
			if delay := info.GetRetryDelay().AsDuration(); delay <= 50*time.Minute || delay > time.Hour {
				t.Errorf("%s: it may be tried again in %v, want an hour", what, delay)
			}
			return
		}
	}
	t.Errorf("%s: %v has no RetryInfo: %v", what, err, failure.Details())
}
