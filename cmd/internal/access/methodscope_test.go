package access

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/config"
)

// registered keeps what is registered.
type registered struct{ *grpc.ServiceDesc }

func (r *registered) RegisterService(description *grpc.ServiceDesc, _ any) {
	r.ServiceDesc = description
}

// stream is a stream with a context.
type stream struct{ grpc.ServerStream }

func (stream) Context() context.Context { return context.Background() }

// TestMethodWithoutAScope: a method or a stream whose scope is not known is refused, and the other ones are served.
func TestMethodWithoutAScope(t *testing.T) {
	served := 0
	unary := func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
		served++
		return 0, nil
	}
	streamed := func(any, grpc.ServerStream) error { served++; return nil }
	description := &grpc.ServiceDesc{
		ServiceName: "s", Methods: []grpc.MethodDesc{{MethodName: "Known", Handler: unary}, {MethodName: "New", Handler: unary}},
		Streams: []grpc.StreamDesc{{StreamName: "Watch", Handler: streamed}, {StreamName: "Stream", Handler: streamed}},
	}
	to := &registered{}
	gate := control(t, config.ServerLimits{}).Gate("server.grpc", 0, true)
	gate.Registrar(to, map[string]config.Scope{"/s/Known": config.ScopeRead, "/s/Watch": config.ScopeRead}).RegisterService(description, nil)
	for i, want := range []codes.Code{codes.OK, codes.Unimplemented} {
		if _, err := to.Methods[i].Handler(nil, t.Context(), nil, nil); status.Code(err) != want {
			t.Errorf("method %d: %v, want %v", i, err, want)
		}
		if err := to.Streams[i].Handler(nil, stream{}); status.Code(err) != want {
			t.Errorf("stream %d: %v, want %v", i, err, want)
		}
	}
	if served != 2 {
		t.Errorf("%d calls were served, want 2", served)
	}
}
