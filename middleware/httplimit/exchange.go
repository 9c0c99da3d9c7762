package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/fields"
)

// Exchange is one request on its way past a guard: what New's middleware is made
// of, step by step, for a front that writes its answers in a way of its own.
//
//	Admit      what the guard says; on an error, Fail answers
//	Wait       after the verdict Wait: holds the request
//	Refuse     answers a request with the verdict Deny
//	Forward    gives the request for the service
//	Announce   tells the client of its limit, before the header of any answer is written
//	Detach     gives the Ticket of a forwarded request, where its end is waited for
//	Done       ends a request that is not forwarded
//	Reset      before the next request
//
// The zero Exchange is ready. It is not safe for concurrent use, and nothing that
// it gives out needs it afterwards, so that it may be kept in a pool.
type Exchange struct {
	// Request is what the rules see, from Admit on.
	Request headgate.Request
	// Answer is what the guard says, after an Admit without error.
	Answer guard.Answer
	// ResolvePath makes Admit match, and Forward pass on, a path with empty or dot
	// segments as its resolved form: "/x/../y" as "/y". Set ResolvePath only when the
	// service gets the request from Forward before any router has chosen a handler.
	// Otherwise Admit answers such a path with ErrPath. Reset keeps ResolvePath.
	ResolvePath bool
	// OneValue makes Admit answer a request with ErrField that has two values of a
	// header or cookie that an enforced rule reads. Otherwise the first value counts,
	// as http.Request's own methods read it; services in other languages read the last
	// value, or all of them. Reset keeps OneValue.
	OneValue bool

	ticket   *guard.Ticket
	query    string
	used     bool
	decided  bool
	fields   fields.Announcer
	document []byte
	violated []string
}

// ErrPath says that the path of a request has no one meaning: services would read
// it in different ways, and rules cannot say which. HTTP answers 400.
var ErrPath = errors.New("httplimit: the path of the request can be read in more than one way")

// errUnresolved is the ErrPath of a path that Options.ResolvePath would resolve.
var errUnresolved = fmt.Errorf("%w: it has empty segments or dot segments", ErrPath)

// ErrHost says that the host of a request has no canonical form, and a rule looks at
// the host. HTTP answers 400.
var ErrHost = errors.New("httplimit: the request's host is not a valid host name")

// ErrField says that a request gives two values for a header or a cookie that a rule
// looks at. HTTP answers 400.
var ErrField = errors.New("httplimit: a header or cookie that a rule reads has more than one value")

// Admit identifies the sender of r and asks g. The error is ErrPath, ErrHost, ErrField
// or that of guard.Admit; Fail answers it. After an Admit without error the caller calls
// Detach or Done.
func (x *Exchange) Admit(g *guard.Guard, r *http.Request) error {
	if x.used {
		x.Reset() // What was derived for another sender is not this one's.
	}
	x.used, x.query = true, r.URL.RawQuery
	if err := identify(&x.Request, r, g.Begin(&x.Answer), x.ResolvePath); err != nil {
		x.Answer.Verdict, x.Answer.Results = headgate.Deny, x.Answer.Results[:0]
		return err
	}
	if x.OneValue && !unambiguous(r.Header, x.Answer.Reads()) {
		return ErrField
	}
	if x.ticket == nil {
		x.ticket = new(guard.Ticket)
	}
	x.ticket.Answer = &x.Answer
	if err := g.Admit(r.Context(), &x.Request, x.ticket); err != nil {
		return err
	}
	x.decided = true
	return nil
}

// Wait is guard.Ticket.Wait: after Deny, Refuse answers.
func (x *Exchange) Wait(ctx context.Context) (headgate.Verdict, error) { return x.ticket.Wait(ctx) }

// Detach gives the Ticket of a forwarded request, whose Done the caller calls when the
// request has ended; nil when nothing waits for the end. It is called after Announce and
// Forward.
func (x *Exchange) Detach() *guard.Ticket {
	t := x.ticket
	if !t.Forward() {
		return nil
	}
	x.ticket = nil
	return t
}

// Done ends a request that is not forwarded.
func (x *Exchange) Done(end guard.End) {
	if x.decided {
		x.ticket.Done(guard.Outcome{End: end})
	}
}

// Announce adds the fields for the answer to a header, in the given style. It adds
// none where nothing was decided, or by no rule.
func (x *Exchange) Announce(style fields.Style, h http.Header) {
	if x.decided {
		x.fields.Announce(style, h, &x.Answer)
	}
}

// Reset makes x ready for another request, and lets go of the last one.
func (x *Exchange) Reset() {
	x.Request, x.query, x.used, x.decided = headgate.Request{}, "", false, false
}

// Fail answers a request that Admit gave an error for: as Reject does where the sender
// is at fault, else with 500. ours reports the latter, which is for the log.
func (x *Exchange) Fail(w http.ResponseWriter, err error) (ours bool) {
	var cost *guard.CostError
	switch {
	case errors.Is(err, errUnresolved):
		x.reject(w, "The path of the request has empty segments or dot segments: send the path without them.")
	case errors.Is(err, ErrPath):
		x.reject(w, "The path of the request can be read in more than one way.")
	case errors.Is(err, ErrHost):
		x.reject(w, "The request's host is not a valid host name.")
	case errors.Is(err, ErrField):
		x.reject(w, "A header or cookie that a limit is counted by has more than one value.")
	case errors.As(err, &cost):
		x.reject(w, "The cost in "+cost.Header+" "+cost.Problem+".", badCost(cost))
	default:
		x.Problem(w, http.StatusInternalServerError, "Internal Server Error", "The request could not be decided.")
		return true
	}
	return false
}
