package proxy

import (
	"context"
	"net/http"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// detach takes over the Ticket of a forwarded request if a stage waits for the request's
// end. It returns the request with a context that stages can cancel.
func (x *exchange) detach(r *http.Request) *http.Request {
	if x.ticket = x.decision.Detach(); x.ticket == nil {
		return r
	}
	if again, ok := x.settings.proxy.tickets.Get().(*guard.Ticket); ok {
		x.decision.Use(again) // For the next request of the exchange.
	}
	x.client, x.reported = r.Context(), fields.Report(x.ticket.Facts())
	x.streams = fields.DetectStream(x.ticket)
	if x.scan = x.ticket.Scan(); x.scan != nil {
		fields.NarrowEncodings(x.fields)
	}
	ctx := x.ticket.Context(r.Context())
	x.ends = ctx != r.Context()
	if x.fields.Has("Upgrade") || x.scan != nil && x.scan.Stops() {
		ctx = context.WithValue(ctx, exchangeKey{}, x)
	}
	if ctx != r.Context() {
		return r.WithContext(ctx)
	}
	return r
}

// exchangeKey is the context key for the exchange of a request that asks for an upgrade, or whose answer may be stopped.
type exchangeKey struct{}

// hidePrivate removes the fields that are for stages alone from a response that upgrades the
// connection. The reverse proxy writes this response without WriteHeader.
func hidePrivate(resp *http.Response) {
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return
	}
	if x, ok := resp.Request.Context().Value(exchangeKey{}).(*exchange); ok {
		x.reported.Take(fields.Map(resp.Header))
	}
}

// endTicket schedules the end of the Ticket for the last byte of the response, which is
// written after the handler returns. Releasing the place ends the Ticket. Without a
// Server, endTicket ends it at once.
func (x *exchange) endTicket() {
	x.reported.Take(fields.Map(x.Header()))
	o := guard.Outcome{End: x.howEnded(), Status: x.status, Header: x.reported.Lookup()}
	switch {
	case x.status == statusClientGone:
		o.Status = 0
	case x.status == 0 && o.End == guard.Answered:
		o.Status = http.StatusSwitchingProtocols
	}
	if x.ticket.CountsBytes() {
		o.Received, o.Sent = x.passed()
	}
	x.ticket.CloseScan(&o)
	entryOf(x).settled(&o)
	if x.place == nil {
		x.ticket.Done(o)
		return
	}
	// A body that a stage may interrupt can use the ticket for some time after the request.
	x.place.ticket, x.place.outcome, x.place.again = x.ticket, o, !x.ends
}

// howEnded returns which side caused an incomplete response. Ticket.Done itself knows
// whether a stage ended the request.
func (x *exchange) howEnded() guard.End {
	switch {
	case x.finished || x.end != guard.Answered:
		return x.end
	case x.client.Err() != nil:
		return guard.ClientLeft
	case x.body.failed():
		return guard.BrokenRequest
	default:
		return guard.Failed
	}
}

// stopped reports whether a stage has ended the request.
func (x *exchange) stopped() bool { return x.ticket != nil && x.ticket.Stopped() }
