package grpclimit

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/fields"
)

// Options say what callers and operators are told. The zero Options are ready.
type Options struct {
	// Style is the form of the metadata that tell a caller of its limit; its fields
	// are spelled in lower case here. fields.None sends none of them.
	Style fields.Style
	// Log gets what goes wrong in ourselves: calls that could not be decided, and
	// waits that could not be given back. nil is slog.Default().
	Log *slog.Logger
}

// Unary guards the unary calls of a server. The interceptor is safe for concurrent
// use. Without a guard Unary panics. It stands best behind those that count and log, so that they see refusals.
func Unary(g *guard.Guard, o Options) grpc.UnaryServerInterceptor {
	l := newLimit(g, o)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		inner, told, err := l.admit(ctx, info.FullMethod)
		if err != nil {
			_ = grpc.SetTrailer(ctx, told) // It fails where there is no connection, and nobody to tell.
			return nil, err
		}
		resp, err := handler(inner, req)
		if err != nil || grpc.SetHeader(ctx, told) != nil {
			_ = grpc.SetTrailer(ctx, told) // The call failed, or the service has sent its header.
		}
		return resp, err
	}
}

// Stream guards the streaming calls of a server: each is decided once, when it
// begins. The interceptor is safe for concurrent use. Without a guard Stream panics.
func Stream(g *guard.Guard, o Options) grpc.StreamServerInterceptor {
	l := newLimit(g, o)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		inner, told, err := l.admit(ss.Context(), info.FullMethod)
		if err != nil {
			ss.SetTrailer(told)
			return err
		}
		s := &stream{ServerStream: ss, ctx: inner, told: told}
		err = handler(srv, s)
		if s.told != nil && (err != nil || ss.SetHeader(s.told) != nil) {
			ss.SetTrailer(s.told)
		}
		return err
	}
}

// limit is what both interceptors do.
type limit struct {
	guard   *guard.Guard
	options Options
	from    origin
	calls   sync.Pool
}

// call is what is decided of one call. Nothing keeps it longer than the decision.
type call struct {
	request headgate.Request
	answer  guard.Answer
}

func newLimit(g *guard.Guard, o Options) *limit {
	if g == nil {
		panic("grpclimit: there is no guard: check the error of guard.New or open.Guard") //nolint:forbidigo // A fault of the program.
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &limit{guard: g, options: o, from: newOrigin(), calls: sync.Pool{New: func() any { return new(call) }}}
}

// admit gives the context for the service and what the caller is told, or the
// status that the call ends with.
func (l *limit) admit(ctx context.Context, method string) (inner context.Context, told metadata.MD, err error) {
	c := l.calls.Get().(*call) //nolint:errcheck,forcetypeassert // The pool makes nothing else.
	defer func() {
		c.request = headgate.Request{} // Else an idle server would keep what its last callers sent.
		l.calls.Put(c)
	}()
	sent := l.from.metadata(ctx)
	if err := fill(ctx, &c.request, method, sent, l.guard.Begin(&c.answer)); err != nil {
		return nil, nil, err
	}
	if err := l.guard.Decide(ctx, &c.request, &c.answer); err != nil {
		return nil, nil, l.undecided(err)
	}
	switch c.answer.Verdict {
	case headgate.Allow:
	case headgate.Wait:
		if err := l.wait(ctx, &c.answer, method); err != nil {
			return nil, l.tell(ctx, &c.answer), err
		}
	default:
		return nil, l.pushBack(ctx, &c.answer), refusal(&c.answer, method)
	}
	told = l.tell(ctx, &c.answer)
	return l.note(mark(ctx, sent, l.guard.Marks(), &c.answer), told), told, nil
}

// wait holds a call until its departure. A deadline before that is no reason to
// wait for it: others get the place.
func (l *limit) wait(ctx context.Context, a *guard.Answer, method string) error {
	deadline, bound := ctx.Deadline()
	if bound && time.Until(deadline) <= a.RetryAfter() {
		if err := l.guard.Cancel(context.WithoutCancel(ctx), a); err != nil {
			l.options.Log.Warn("a place in a queue could not be given back", "error", err)
		}
		late := &a.Closest().Decision
		a.Verdict, late.Verdict, late.Reason = headgate.Deny, headgate.Deny, headgate.WaitTooLong
		return refusal(a, method)
	}
	err := l.guard.Wait(ctx, a)
	if err == nil {
		return nil
	}
	if err != ctx.Err() { //nolint:errorlint // More than the end of the call went wrong, if it is not that alone.
		l.options.Log.Warn("a place in a queue could not be given back", "error", err)
	}
	return status.FromContextError(ctx.Err()).Err()
}

// undecided gives the status for a call that the guard cannot count.
func (l *limit) undecided(err error) error {
	if cost, ok := errors.AsType[*guard.CostError](err); ok {
		return badCost(cost)
	}
	l.options.Log.Error("a call could not be decided", "error", err)
	return status.Error(codes.Internal, "The call could not be decided.")
}
