package grpclimit

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/rule"
)

// Options configures Unary and Stream. The zero value has the defaults.
type Options struct {
	// Style is the form of the metadata with a caller's limit. Names are in lower case here.
	// fields.None omits this metadata.
	Style Style
	// Log receives internal errors: calls that could not be decided, and canceled calls
	// whose units could not be returned. nil means slog.Default().
	Log *slog.Logger
}

// Unary returns an interceptor that limits the unary calls of a server. The interceptor
// is safe for concurrent use. Unary panics if g is nil or Check(g) gives an error. Chain the interceptor after those
// that count and log, so that they also see refusals.
func Unary(g *guard.Guard, o Options) grpc.UnaryServerInterceptor {
	l := newLimit(g, o)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		inner, ticket, announced, err := l.admit(ctx, info.FullMethod)
		if err != nil {
			_ = grpc.SetTrailer(ctx, announced) // SetTrailer fails only without a connection.
			return nil, err
		}
		var resp any
		if ticket == nil {
			resp, err = handler(inner, req)
		} else {
			resp, err = serveCall(inner, ticket, func(ctx context.Context) (any, error) { return handler(ctx, req) })
		}
		if err != nil || grpc.SetHeader(ctx, announced) != nil {
			_ = grpc.SetTrailer(ctx, announced) // The call failed, or the service has already sent its header.
		}
		return resp, err
	}
}

// Stream returns an interceptor that limits the streaming calls of a server. Each stream is
// decided once, when it starts. The interceptor is safe for concurrent use. Stream panics if
// g is nil or Check(g) gives an error.
func Stream(g *guard.Guard, o Options) grpc.StreamServerInterceptor {
	l := newLimit(g, o)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		inner, ticket, announced, err := l.admit(ss.Context(), info.FullMethod)
		if err != nil {
			ss.SetTrailer(announced)
			return err
		}
		s := &stream{ServerStream: ss, ctx: inner, announced: announced}
		if ticket == nil {
			err = handler(srv, s)
		} else {
			err = serveStream(s, ticket, func() error { return handler(srv, s) })
		}
		if s.announced != nil && (err != nil || ss.SetHeader(s.announced) != nil) {
			ss.SetTrailer(s.announced)
		}
		return err
	}
}

// limit is the common state of both interceptors.
type limit struct {
	guard   *guard.Guard
	options Options
	from    origin
	calls   sync.Pool
}

// call is the request and the decision of one call. A call is pooled, and not used after
// the decision.
type call struct {
	request headgate.Request
	answer  guard.Answer
	ticket  *guard.Ticket // nil if the last call's ticket lives until that call ends
}

func newLimit(g *guard.Guard, o Options) *limit {
	if g == nil {
		//nolint:forbidigo // A programming error may panic.
		panic("grpclimit: Unary or Stream got a nil guard: check the error of guard.New or open.Guard")
	}
	if err := made(g.Attach(front())); err != nil {
		//nolint:forbidigo // The limit would be wrong for every client. Check gives the error to programs that handle it.
		panic("grpclimit: " + err.Error())
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &limit{guard: g, options: o, from: newOrigin(), calls: sync.Pool{New: func() any { return new(call) }}}
}

// Check reports whether g can stand behind this front. The error is a *guard.UnsuppliedError if a rule, fair share or a stage counts by a
// descriptor or a cookie, which no call has. Rules for other methods than POST count no call. Check changes nothing: only after Unary or
// Stream does a Reload of g give the same error. Call Check before Unary and Stream if the rules
// come from a file: both panic with its error.
func Check(g *guard.Guard) error {
	return made(g.CheckFront(front()))
}

// front describes this package to a guard.
func front() guard.Front {
	return guard.Front{Name: "package grpclimit", Supplies: rule.SupplyHeaders | rule.SupplySubjects, Method: http.MethodPost}
}

// made removes the error of a guard that was not made.
func made(err error) error {
	if errors.Is(err, headgate.ErrNotMade) {
		return nil // The interceptors refuse each call.
	}
	return err
}

// admit decides a call. For an allowed call it returns the context for the service and
// the metadata for the caller. It also returns the Ticket if a stage waits for the call's end.
// For a refused call err is the status.
func (l *limit) admit(ctx context.Context, method string) (inner context.Context, t *guard.Ticket, announced metadata.MD, err error) {
	c := l.calls.Get().(*call) //nolint:errcheck,forcetypeassert // The pool has only *call.
	defer func() {
		c.request = headgate.Request{} // The pool must not keep the metadata of past calls.
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
			err = l.canceled(ctx, err)
			c.ticket.Done(guard.Outcome{End: guard.ClientLeft, GRPC: true, Status: int(status.Code(err))})
			return nil, nil, l.announce(ctx, &c.answer), err
		}
	}
	if verdict == headgate.Deny {
		announced, err = l.pushBack(ctx, &c.answer), refusal(&c.answer, method)
		c.ticket.Done(guard.Outcome{End: guard.Refused, GRPC: true, Status: int(status.Code(err))})
		return nil, nil, announced, err
	}
	announced = l.announce(ctx, &c.answer)
	inner = l.note(mark(ctx, sent, c.ticket.Marks(), &c.answer, c.ticket.Headers()), announced)
	if c.ticket.Forward() {
		t, c.ticket = c.ticket, nil
	}
	return inner, t, announced, nil
}

// canceled returns the status of a call whose context ended while it waited.
func (l *limit) canceled(ctx context.Context, err error) error {
	if err != ctx.Err() { //nolint:errorlint // because a joined error has more than ctx.Err().
		l.options.Log.Warn("could not return the units of a canceled request", "error", err)
	}
	return status.FromContextError(ctx.Err()).Err()
}

// undecided returns the status of a call after an error of Admit.
func (l *limit) undecided(err error) error {
	if cost, ok := errortype.As[*guard.CostError](err); ok {
		return badCost(cost)
	}
	if invalid, ok := errortype.As[*guard.RequestError](err); ok {
		return status.Error(codes.InvalidArgument, "The call cannot be checked against its limits: "+invalid.Problem+".")
	}
	l.options.Log.Error("could not decide a call", "error", err)
	return status.Error(codes.Internal, "The call could not be checked against its limits.")
}
