package proxy

import (
	"net/http"

	"github.com/headgate/headgate/guard"
)

// detach takes the Ticket of a request that goes to the upstream, if a stage waits for its
// end, and gives the request with a context that stages can end.
func (x *exchange) detach(r *http.Request) *http.Request {
	if x.ticket = x.asked.Detach(); x.ticket == nil {
		return r
	}
	x.left = r.Context().Err
	if ctx := x.ticket.Context(r.Context()); ctx != r.Context() {
		return r.WithContext(ctx)
	}
	return r
}

// endTicket has the Ticket end with the last byte of the answer, which follows the
// handler: when the place of the request is released. Without a Server it ends now.
func (x *exchange) endTicket() {
	o := guard.Outcome{Status: x.status, Header: x.answered()}
	switch {
	case x.status == statusClientGone:
		o.Status, o.End = 0, guard.ClientLeft
	case !x.finished && x.left() != nil:
		o.End = guard.ClientLeft
	case !x.finished, x.status == http.StatusBadGateway, x.status == http.StatusGatewayTimeout:
		o.End = guard.Failed
	case x.status == 0:
		o.Status = http.StatusSwitchingProtocols
	}
	if x.place == nil {
		x.ticket.Done(o)
		return
	}
	x.place.ticket, x.place.outcome = x.ticket, o
}

// answered copies the headers and trailers of the answer that stages read: net/http uses
// its own again when the handler has returned.
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
