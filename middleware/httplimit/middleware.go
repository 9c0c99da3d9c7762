package httplimit

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/rule"
)

// Options configures New's middleware. The zero value has the defaults.
type Options struct {
	// Style is the form of the rate limit fields in responses.
	Style Style
	// ResolvePath matches a path with empty or dot segments in its resolved form, and gives
	// the next handler the resolved path: "/x/../y" as "/y". ResolvePath is safe only
	// around the whole router, because an outer router has already chosen its handler by
	// the path as sent. Without ResolvePath such a request gets 400.
	ResolvePath bool
	// CORS lets pages of other origins read the answers of the middleware, and exempts their preflights from rules. nil does neither.
	// Fields that another handler has set stay as they are.
	CORS *CORS
	// Instance names this instance to clients: a refusal has it and the ID of its decision in the field Headgate-Decision. "" sends no
	// field. See report.Config.Instance.
	Instance string
	// Log receives internal errors: requests that could not be decided, and canceled
	// requests whose units could not be returned. nil means slog.Default().
	Log *slog.Logger
}

// New returns middleware with which g decides each request. All handlers that it wraps
// share g and its counters. A request that a rule drops ends with a panic of http.ErrAbortHandler, with which net/http closes the
// connection, or the stream of HTTP/2. Middleware around this one must not recover from it. The middleware is safe for concurrent use.
// New panics if g is nil or Check(g) gives an error, and the middleware panics if the handler is nil. A zero guard.Guard gives 500 for
// each request.
//
// An allowed request costs one allocation, for the rate limit fields, or none if no
// fields are sent.
func New(g *guard.Guard, o Options) func(http.Handler) http.Handler {
	if g == nil {
		//nolint:forbidigo // A programming error may panic.
		panic("httplimit: New got a nil guard: check the error of guard.New or open.Guard")
	}
	if err := made(g.Attach(front())); err != nil {
		//nolint:forbidigo // The limit would be wrong for every client. Check gives the error to programs that handle it.
		panic("httplimit: " + err.Error())
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	l := &limits{guard: g, style: o.Style, log: o.Log, cors: o.CORS, resolves: o.ResolvePath, instance: o.Instance}
	return func(next http.Handler) http.Handler {
		if next == nil {
			//nolint:forbidigo // A programming error may panic.
			panic("httplimit: the next handler is nil: pass a handler, such as http.DefaultServeMux")
		}
		return &handler{limits: l, next: next}
	}
}

// Check reports whether g can stand behind this front. The error is a *guard.UnsuppliedError if a rule, fair share or a stage counts by a
// descriptor, which no HTTP request has. Check changes nothing: only after New does a Reload of g give the same error. Call
// Check before New if the rules come from a file: New panics with its error.
func Check(g *guard.Guard) error {
	return made(g.CheckFront(front()))
}

// front describes this package to a guard.
func front() guard.Front {
	supplies := rule.SupplyHeaders | rule.SupplyCookies | rule.SupplyQueries | rule.SupplySubjects | rule.SupplyBodies
	return guard.Front{Name: "package httplimit", Bytes: true, Supplies: supplies}
}

// made removes the error of a guard that was not made.
func made(err error) error {
	if errors.Is(err, headgate.ErrNotMade) {
		return nil // The middleware answers 500.
	}
	return err
}

// limits has the values that all handlers of one New share.
type limits struct {
	guard    *guard.Guard
	style    Style
	log      *slog.Logger
	cors     *CORS
	resolves bool
	instance string
	pool     sync.Pool
	bodies   bodies
}

// handler limits the requests to next.
type handler struct {
	*limits

	next http.Handler
}

// ServeHTTP handles a request in five steps: identify, match, decide, act, report.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x, ok := h.pool.Get().(*Exchange)
	if !ok {
		x = &Exchange{ResolvePath: h.resolves, CORS: h.cors, Instance: h.instance, Body: h.bodies.read}
	}
	forward, end := h.admit(x, w, r)
	if b, ok := r.Body.(*begun); ok {
		defer b.release()
	}
	dropped := forward == nil && x.decided && x.Answer.Drops()
	var ticket *guard.Ticket
	if forward != nil {
		ticket = x.Detach()
	} else {
		x.Done(end)
	}
	// The Exchange returns to the pool now, because the next handler may run for long.
	x.Reset()
	h.pool.Put(x)
	if dropped {
		panic(http.ErrAbortHandler) //nolint:forbidigo // because net/http has no other way to close a connection without an answer.
	}
	if forward == nil {
		return
	}
	var in *counted
	if ticket != nil {
		forward = narrowed(ticket, forward)
		forward, in = counting(ticket, forward)
		forward = withContext(ticket, w, forward)
	}
	if forward != r {
		defer copyBack(r, forward)
	}
	if ticket != nil {
		serveTracked(h.next, ticket, h.cors, w, forward, in)
		return
	}
	h.next.ServeHTTP(w, forward)
}

// admit returns the request for the next handler. If the request does not pass, admit
// answers it and returns nil.
func (l *limits) admit(x *Exchange, w http.ResponseWriter, r *http.Request) (*http.Request, guard.End) {
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
			l.canceled(w, r, x, err)
			return nil, guard.ClientLeft
		}
	}
	if verdict == headgate.Deny && x.Answer.Drops() {
		return nil, guard.Refused
	}
	x.Announce(l.style, w.Header())
	if verdict == headgate.Deny {
		x.Refuse(w)
		return nil, guard.Refused
	}
	if l.cors != nil {
		l.cors.Announce(fields.Map(w.Header()), x.Request.Header)
	}
	return x.Forward(l.guard, r), guard.Answered
}

// canceled answers a request whose context ended while it waited. Usually the client has
// disconnected. After a timeout, the 503 prevents the empty 200 that net/http would send.
func (l *limits) canceled(w http.ResponseWriter, r *http.Request, x *Exchange, err error) {
	if err != r.Context().Err() { //nolint:errorlint // because a joined error has more than ctx.Err().
		l.log.Warn("could not return the units of a canceled request", "error", err)
	}
	x.Problem(w, http.StatusServiceUnavailable, "Service Unavailable", "The request was canceled while it waited for its turn.")
}
