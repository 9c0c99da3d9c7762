package httplimit

import (
	"log/slog"
	"net/http"
	"sync"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/fields"
)

// Options say how New's middleware speaks. The zero Options are right.
type Options struct {
	// Style is the form of the fields that tell a client of its limit.
	Style fields.Style
	// ResolvePath matches a path with empty or dot segments as its resolved form, and
	// gives the next handler the resolved path: "/x/../y" as "/y". ResolvePath is safe
	// only around the whole router: a router outside has already chosen its handler by
	// the path as sent. Without ResolvePath such a request is answered with 400.
	ResolvePath bool
	// Log gets what goes wrong in ourselves: requests that could not be decided, and
	// waits that could not be given back. nil is slog.Default().
	Log *slog.Logger
}

// New gives the middleware that asks g about each request. All handlers that it is
// put around share g, and with it the counters. It is safe for concurrent use. New
// panics without a guard, and the middleware without a handler: a program that starts
// has both. With a zero guard.Guard each request is answered with 500.
//
// An allowed request costs one allocation, for the fields that tell of its limit,
// and none where there are none to send.
func New(g *guard.Guard, o Options) func(http.Handler) http.Handler {
	if g == nil {
		panic("httplimit: there is no guard: check the error of guard.New or open.Guard") //nolint:forbidigo // A fault of the program.
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	l := &limits{guard: g, style: o.Style, log: o.Log, resolves: o.ResolvePath}
	return func(next http.Handler) http.Handler {
		if next == nil {
			//nolint:forbidigo // A programmer's fault at construction.
			panic("httplimit: the next handler is nil: give one, such as http.DefaultServeMux")
		}
		return &handler{limits: l, next: next}
	}
}

// limits is what the handlers of one New share.
type limits struct {
	guard    *guard.Guard
	style    fields.Style
	log      *slog.Logger
	resolves bool
	pool     sync.Pool
}

// handler asks before next.
type handler struct {
	*limits

	next http.Handler
}

// ServeHTTP takes a request its whole way: identify, match, decide, act, report.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x, ok := h.pool.Get().(*Exchange)
	if !ok {
		x = &Exchange{ResolvePath: h.resolves}
	}
	forward, end := h.pass(x, w, r)
	var ticket *guard.Ticket
	if forward != nil {
		ticket = x.Detach()
	} else {
		x.Done(end)
	}
	// It is back in the pool before the next handler runs, however long that takes.
	x.Reset()
	h.pool.Put(x)
	if forward == nil {
		return
	}
	if ticket != nil {
		forward = withContext(ticket, forward)
	}
	if forward != r {
		defer giveBack(r, forward)
	}
	if ticket != nil {
		attend(h.next, ticket, w, forward)
		return
	}
	h.next.ServeHTTP(w, forward)
}

// pass gives the request for the next handler, or answers it and gives nil.
func (l *limits) pass(x *Exchange, w http.ResponseWriter, r *http.Request) (*http.Request, guard.End) {
	if err := x.Admit(l.guard, r); err != nil {
		if x.Fail(w, err) {
			l.log.Error("could not decide a request", "error", err)
		}
		return nil, guard.Refused
	}
	verdict := x.Answer.Verdict
	if verdict == headgate.Wait {
		var err error
		if verdict, err = x.Wait(r.Context()); err != nil {
			l.brokenOff(w, r, x, err)
			return nil, guard.ClientLeft
		}
	}
	x.Announce(l.style, w.Header())
	if verdict == headgate.Deny {
		x.Refuse(w)
		return nil, guard.Refused
	}
	return x.Forward(l.guard, r), guard.Answered
}

// withContext gives the request a context that stages can end, where one of them does.
func withContext(t *guard.Ticket, r *http.Request) *http.Request {
	if ctx := t.Context(r.Context()); ctx != r.Context() {
		return r.WithContext(ctx)
	}
	return r
}

// brokenOff ends a request whose context ended while it waited. As a rule the
// client went away and reads nothing; where a time ran out, it is not left with
// the empty 200 that a handler's silence means.
func (l *limits) brokenOff(w http.ResponseWriter, r *http.Request, x *Exchange, err error) {
	if err != r.Context().Err() { //nolint:errorlint // because it asks whether there is more to it than that.
		l.log.Warn("could not return the units of a canceled request", "error", err)
	}
	x.Problem(w, http.StatusServiceUnavailable, "Service Unavailable", "The request ended before its turn came.")
}
