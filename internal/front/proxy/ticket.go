package proxy

import (
	"net/http"

	"github.com/headgate/headgate/guard"
)

// detach takes over the Ticket of a forwarded request if a stage waits for the request's
// end. It returns the request with a context that stages can cancel.
func (x *exchange) detach(r *http.Request) *http.Request {
	if x.ticket = x.decision.Detach(); x.ticket == nil {
		return r
	}
	x.left = r.Context().Err
	if ctx := x.ticket.Context(r.Context()); ctx != r.Context() {
		return r.WithContext(ctx)
	}
	return r
}

// endTicket schedules the end of the Ticket for the last byte of the response, which is
// written after the handler returns. Releasing the place ends the Ticket. Without a
// Server, endTicket ends it at once.
func (x *exchange) endTicket() {
	o := guard.Outcome{End: x.howEnded(), Status: x.status, Header: x.answered()}
	switch {
	case x.status == statusClientGone:
		o.Status = 0
	case x.status == 0 && o.End == guard.Answered:
		o.Status = http.StatusSwitchingProtocols
	}
	if x.place == nil {
		x.ticket.Done(o)
		return
	}
	x.place.ticket, x.place.outcome = x.ticket, o
}

// howEnded returns which side caused an incomplete response. Ticket.Done itself knows
// whether a stage ended the request.
func (x *exchange) howEnded() guard.End {
	switch {
	case x.finished || x.end != guard.Answered:
		return x.end
	case x.left() != nil:
		return guard.ClientLeft
	case x.body.failed():
		return guard.BrokenRequest
	default:
		return guard.Failed
	}
}

// stopped reports whether a stage has ended the request.
func (x *exchange) stopped() bool { return x.ticket != nil && x.ticket.Stopped() }

// answered copies the headers and trailers that stages read, because net/http reuses the
// header map after the handler returns.
func (x *exchange) answered() func(string) (string, bool) {
	names := x.ticket.Facts().Answer
	if len(names) == 0 {
		return nil
	}
	values := make(map[string]string, len(names))
	for _, name := range names {
		for _, spelling := range [...]string{name, http.TrailerPrefix + name} {
			if lines := x.Header()[spelling]; len(lines) > 0 {
				values[name] = lines[0]
			}
		}
	}
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}
