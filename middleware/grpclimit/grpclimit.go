package grpclimit

import (
	"context"
	"errors"
	"log/slog"
	"sync"

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
		inner, ticket, told, err := l.admit(ctx, info.FullMethod)
		if err != nil {
			_ = grpc.SetTrailer(ctx, told) // It fails where there is no connection, and nobody to tell.
			return nil, err
		}
		var resp any
		if ticket == nil {
			resp, err = handler(inner, req)
		} else {
			resp, err = attendCall(inner, ticket, func(ctx context.Context) (any, error) { return handler(ctx, req) })
		}
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
		inner, ticket, told, err := l.admit(ss.Context(), info.FullMethod)
		if err != nil {
			ss.SetTrailer(told)
			return err
		}
		s := &stream{ServerStream: ss, ctx: inner, told: told}
		if ticket == nil {
			err = handler(srv, s)
		} else {
			err = attendStream(s, ticket, func() error { return handler(srv, s) })
		}
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
	ticket  *guard.Ticket // nil after one that lives until the end of its call
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

// admit gives the context for the service, the Ticket if a stage waits for the end of the
// call, and what the caller is told, or the status that the call ends with.
func (l *limit) admit(ctx context.Context, method string) (inner context.Context, t *guard.Ticket, told metadata.MD, err error) {
	c := l.calls.Get().(*call) //nolint:errcheck,forcetypeassert // The pool makes nothing else.
	defer func() {
		c.request = headgate.Request{} // Else an idle server would keep what its last callers sent.
		l.calls.Put(c)
	}()
	sent := l.from.metadata(ctx)
	if err := fill(ctx, &c.request, method, sent, l.guard.Begin(&c.answer)); err != nil {
		return nil, nil, nil, err
	}
	if c.ticket == nil {
		c.ticket = new(guard.Ticket)
	}
	c.ticket.Answer = &c.answer
	if err := l.guard.Admit(ctx, &c.request, c.ticket); err != nil {
		return nil, nil, nil, l.undecided(err)
	}
	verdict := c.answer.Verdict
	if verdict == headgate.Wait {
		if verdict, err = c.ticket.Wait(ctx); err != nil {
			err = l.brokenOff(ctx, err)
			c.ticket.Done(guard.Outcome{End: guard.ClientLeft, GRPC: true, Status: int(status.Code(err))})
			return nil, nil, l.tell(ctx, &c.answer), err
		}
	}
	if verdict == headgate.Deny {
		told, err = l.pushBack(ctx, &c.answer), refusal(&c.answer, method)
		c.ticket.Done(guard.Outcome{End: guard.Refused, GRPC: true, Status: int(status.Code(err))})
		return nil, nil, told, err
	}
	told = l.tell(ctx, &c.answer)
	inner = l.note(mark(ctx, sent, c.ticket.Marks(), &c.answer, c.ticket.Headers()), told)
	if c.ticket.Forward() {
		t, c.ticket = c.ticket, nil
	}
	return inner, t, told, nil
}

// brokenOff gives the status of a call whose context ended while it waited.
func (l *limit) brokenOff(ctx context.Context, err error) error {
	if err != ctx.Err() { //nolint:errorlint // More than the end of the call went wrong, if it is not that alone.
		l.options.Log.Warn("could not return the units of a canceled request", "error", err)
	}
	return status.FromContextError(ctx.Err()).Err()
}

// undecided gives the status for a call that the guard cannot count.
func (l *limit) undecided(err error) error {
	if cost, ok := errors.AsType[*guard.CostError](err); ok {
		return badCost(cost)
	}
	l.options.Log.Error("could not decide a call", "error", err)
	return status.Error(codes.Internal, "The call could not be checked against its limits.")
}
