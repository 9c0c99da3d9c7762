package httplimit

import (
	"context"
	"errors"
	"net/http"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/rule"
)

// Exchange handles one request before a guard. Its methods are the steps of New's
// middleware, for a front end that writes its own responses.
//
//	Admit      decides the request; after an error, call Fail
//	Wait       delays the request after the verdict Wait
//	Refuse     answers a request with the verdict Deny
//	Forward    returns the request for the service; a gateway calls Mark in its place
//	Announce   adds the rate limit fields, before the header of any response is written
//	Detach     returns the Ticket of a forwarded request whose end matters to a stage
//	Done       ends a request that is not forwarded
//	Reset      prepares for the next request
//
// The zero Exchange is ready to use. An Exchange is not safe for concurrent use. After Reset
// no result refers to the Exchange, so an Exchange can be pooled.
type Exchange struct {
	// Request is the request as the rules see it. Admit sets it.
	Request headgate.Request
	// Answer is the guard's answer, which is valid after an Admit without error.
	Answer guard.Answer
	// ResolvePath makes Admit match, and Forward pass on, a path with empty or dot
	// segments in its resolved form: "/x/../y" as "/y". Set ResolvePath only if the
	// service gets the request from Forward before any router has chosen a handler.
	// Without ResolvePath, Admit returns ErrPath for such a path. Reset keeps ResolvePath.
	ResolvePath bool
	// OneValue makes Admit return ErrField for a request with two values of a header or
	// cookie that an enforced rule reads, or with a cookie that parsers read differently, and ErrQuery for a query whose values services
	// read differently. Without OneValue the first value counts, as in
	// http.Request's own methods. Services in other languages read the last value, or all
	// of them. Reset keeps OneValue.
	OneValue bool
	// Plain makes Refuse, Reject and Fail answer in HTTP, also to a request with the headers of
	// gRPC or Connect. A gateway that asks about a request of its client reads only the status.
	// Reset keeps Plain.
	Plain bool
	// RequestID is the header with the id of a request, in canonical spelling, for the placeholder {request_id} of refusals. "" is
	// X-Request-Id. Reset keeps RequestID.
	RequestID string
	// CORS adds header fields to answers of this package, and exempts preflights. nil does neither. Reset keeps CORS.
	CORS *CORS
	// ID is the id of the next request, for logs. Reset clears it.
	ID string
	// Instance names this instance to clients: Refuse sends it with the DecisionID of the Answer, in the field Headgate-Decision. "" sends
	// no field. Reset keeps Instance.
	Instance string
	// Body reads the beginning of the body of r, up to most bytes, for rules that read bodies. part says that the body is longer. The body
	// of the forwarded request begins with data, which must not change before Reset. nil reads no body, and such rules decide without one.
	// Reset keeps Body.
	Body func(r *http.Request, most int64) (data []byte, part bool, err error)

	ticket   *guard.Ticket
	facts    *guard.BodyFacts // nil before its first use
	cookies  cookies
	marks    []string // the memory of the values that Mark has set
	query    string
	used     bool
	decided  bool
	fields   fields.Announcer
	document []byte
	cached   cachedDocument
	violated []string
	response response
	sent     rule.QueryValues
}

// ErrPath means that services would read the path of a request in different ways, so that
// rules cannot match it. The HTTP status is 400.
var ErrPath = rule.ErrPath

// ErrHost means that the host of a request has no canonical form, and a rule reads the
// host. The HTTP status is 400.
var ErrHost = errors.New("httplimit: the request's host is not a valid host name")

// ErrField means that a request has two values of a header or cookie that a rule reads, or a
// cookie that parsers read differently. The HTTP status is 400.
var ErrField = errors.New("httplimit: a header or cookie that a rule reads has more than one value or meaning")

// ErrQuery means that services would read a value of the query, which a rule reads, in different ways: it is there twice, or
// not plainly written. The HTTP status is 400.
var ErrQuery = errors.New("httplimit: a value of the query that a rule reads has more than one value or meaning")

// Admit identifies the client of r and lets g decide the request. The error is ErrPath,
// ErrHost, ErrField, ErrQuery or an error of guard.Admit; Fail answers it. After an Admit without
// error the caller must call Detach or Done.
func (x *Exchange) Admit(g *guard.Guard, r *http.Request) error {
	return x.AdmitFields(g, r, headers(r.Header))
}

// AdmitFields is Admit for a server that does not keep the fields of a request in r.Header. It reads them from h, which must not
// change before Reset. The caller calls Mark in place of Forward.
func (x *Exchange) AdmitFields(g *guard.Guard, r *http.Request, h Fields) error {
	if err := x.identify(g, r, h); err != nil {
		return err
	}
	if x.Body != nil {
		if most := x.Answer.BodyBound(&x.Request); most > 0 {
			if err := x.readBody(r, most); err != nil {
				return err
			}
		}
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

// readBody reads what the rules need of the body.
func (x *Exchange) readBody(r *http.Request, most int64) error {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	data, part, err := x.Body(r, most)
	if err != nil {
		return err
	}
	if x.facts == nil {
		x.facts = new(guard.BodyFacts)
	}
	x.Answer.ReadBody(&x.Request, x.facts, data, part)
	return nil
}

// Use gives the Ticket for the next Admit, which otherwise makes one. A Ticket of Detach may be used again after its Done.
func (x *Exchange) Use(t *guard.Ticket) { x.ticket = t }

// Identify is the first part of Admit, for a front end that calls guard.Decide with Request and Answer
// itself: it sets Request from r. The error is ErrPath, ErrHost, ErrField or ErrQuery.
func (x *Exchange) Identify(g *guard.Guard, r *http.Request) error {
	return x.identify(g, r, headers(r.Header))
}

func (x *Exchange) identify(g *guard.Guard, r *http.Request, h Fields) error {
	id := x.ID
	if x.used {
		x.Reset() // Values of another request must not remain.
	}
	x.used, x.query, x.cookies.fields, x.Request.ID = true, r.URL.RawQuery, h, id
	x.Request.Header, x.Request.Cookie = h, &x.cookies // Fail reads the fields even after an error.
	if x.query != "" {
		x.sent.Reset(x.query)
		x.Request.Query = &x.sent
	}
	if err := identify(&x.Request, r, g.Begin(&x.Answer), x.ResolvePath); err != nil {
		x.Answer.Verdict, x.Answer.Results = headgate.Deny, x.Answer.Results[:0]
		return err
	}
	x.Request.Preflight = x.CORS.Exempts(r.Method, h)
	if !x.OneValue {
		return nil
	}
	reads := x.Answer.Reads()
	if !unambiguous(h, reads) {
		return ErrField
	}
	if len(reads.Queries) > 0 && x.query != "" {
		if _, unclear := reads.ReadQuery(&x.sent); unclear {
			return ErrQuery
		}
	}
	return nil
}

// Wait calls guard.Ticket.Wait. After the verdict Deny the caller calls Refuse.
func (x *Exchange) Wait(ctx context.Context) (headgate.Verdict, error) { return x.ticket.Wait(ctx) }

// Detach returns the Ticket of a forwarded request, or nil if no stage waits for its end.
// The caller calls the Ticket's Done when the request has ended. Detach must come after
// Announce and Forward.
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

// Announce adds the rate limit fields to the header of a response, in the given style. It
// adds nothing if no rule decided the request.
func (x *Exchange) Announce(style Style, h http.Header) { x.AnnounceFields(style, fields.Map(h)) }

// AnnounceFields is Announce for a server that does not keep the fields of a response in an http.Header.
func (x *Exchange) AnnounceFields(style Style, h ResponseFields) {
	if x.decided {
		x.fields.Announce(style, h, &x.Answer)
	}
}

// ResponseFields are header fields that an Exchange changes: those of a response and, for Mark, those of the request. Names are in
// canonical form.
type ResponseFields interface {
	// Lines returns the lines of a name, in their order. The caller must not change them.
	Lines(name string) []string
	// Set sets the lines of a name.
	Set(name string, lines []string)
	// Delete removes the lines of a name.
	Delete(name string)
}

// Reset prepares x for another request and drops its references to the last one.
func (x *Exchange) Reset() {
	if x.Request.Query != nil {
		x.sent.Reset("")
	}
	x.Request, x.cookies.fields, x.query, x.used, x.decided, x.marks = headgate.Request{}, nil, "", false, false, x.marks[:0]
	x.ID = ""
}

// Fail answers a request after an error of Admit. If the client caused the error, it
// answers like Reject. Otherwise it answers 500 and returns true, and the caller logs the
// error.
func (x *Exchange) Fail(w http.ResponseWriter, err error) (internal bool) {
	var cost *guard.CostError
	var invalid *guard.RequestError
	switch {
	case errors.Is(err, rule.ErrUnresolved):
		x.reject(w, "The request's path has empty segments or dot segments: send the path without them.")
	case errors.Is(err, ErrPath):
		x.reject(w, "The request's path is ambiguous: services read it in different ways.")
	case errors.Is(err, ErrHost):
		x.reject(w, "The request's host is not a valid host name.")
	case errors.Is(err, ErrField):
		x.reject(w, "A header or cookie that a limit is counted by has more than one value or meaning.")
	case errors.Is(err, ErrQuery):
		x.reject(w, "A value of the query that a limit reads has more than one value or meaning: send NAME=VALUE once, and %20 for a "+
			"space.")
	case errors.As(err, &cost):
		x.reject(w, "The cost in "+cost.Header+" "+cost.Problem+".", badCost(cost))
	case errors.As(err, &invalid):
		x.reject(w, "The request cannot be checked against its limits: "+invalid.Problem+".")
	default:
		x.Problem(w, http.StatusInternalServerError, "Internal Server Error", "The request could not be checked against its limits.")
		return true
	}
	return false
}
