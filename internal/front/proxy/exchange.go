package proxy

import (
	"net/http"
	"time"

	"github.com/headgate/headgate/middleware/httplimit"
)

// exchange is one request on its way and the writer of its answer. It is taken
// from a pool and given back when the handler returns; nothing keeps it longer.
type exchange struct {
	http.ResponseWriter

	settings *settings
	asked    httplimit.Exchange
	body     *body // nil when the client sends none

	status int
	// stream is a connection with one request at a time: HTTP/1.
	stream bool
	// sends says that the request has a body.
	sends    bool
	written  int
	deadline time.Time
}

// connection is what net/http's writers offer for bodies.
type connection interface {
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
	EnableFullDuplex() error
}

func (p *Proxy) take(w http.ResponseWriter, r *http.Request) *exchange {
	x, ok := p.pool.Get().(*exchange)
	if !ok {
		x = &exchange{asked: httplimit.Exchange{ResolvePath: true, OneValue: true}} // The service may be anything.
	}
	x.ResponseWriter, x.settings = w, p.current.Load()
	x.stream, x.sends = r.ProtoMajor == 1, r.Body != nil && r.ContentLength != 0
	p.traffic.InFlight.Add(1)
	return x
}

// done counts the exchange and gives it back. It runs too when the reverse proxy
// aborts the answer, which it does by a panic.
func (p *Proxy) done(x *exchange) {
	if x.body != nil {
		x.body.end()
	}
	p.traffic.InFlight.Add(-1)
	switch {
	case x.status == 0:
		p.traffic.Answered(http.StatusSwitchingProtocols)
	case x.status == statusClientGone:
		p.traffic.Answered(0)
	default:
		p.traffic.Answered(x.status)
	}
	x.ResponseWriter, x.settings, x.body = nil, nil, nil
	x.asked.Reset()
	x.status, x.written, x.deadline = 0, 0, time.Time{}
	p.pool.Put(x)
}

// Unwrap lets http.ResponseController flush and hijack.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader adds the fields of the closest policy to the final answer. Those of
// informational answers are the upstream's alone, and the reverse proxy clears
// the map after each.
func (x *exchange) WriteHeader(status int) {
	if status == http.StatusContinue {
		return // The server says so itself when the body is first read, which the upstream's word starts.
	}
	if status >= http.StatusOK && x.status == 0 {
		x.status = status
		x.asked.Announce(x.settings.style, x.Header())
		if x.stream {
			x.bound(x.part(time.Now()))
		}
	}
	x.ResponseWriter.WriteHeader(status)
}

// part sees to the rest of a body whose request is answered before its end, and
// tells when the answer leaves at the latest. The rest of one that is forwarded may
// be anything, and what follows is never taken for a request: the connection ends
// with this answer. One that was never read, of a request that is refused, is read
// over by the server first, which waits for it no longer than bodyIdle.
func (x *exchange) part(now time.Time) time.Time {
	switch {
	case x.body != nil && !x.body.ended.Load():
		x.Header()["Connection"] = closeTable
	case x.body == nil && x.sends && x.settings.bodyIdle > 0:
		now = now.Add(x.settings.bodyIdle)
		if from, ok := x.ResponseWriter.(connection); ok {
			_ = from.SetReadDeadline(now)
		}
	}
	return now
}

// firstWrite is how much of an answer HTTP/2 takes without waiting for the client.
const firstWrite = 4 << 10

// Write bounds how long a client may leave an answer unread. A deadline of
// HTTP/1 is only felt by a write, and is moved now and then; one of HTTP/2 ends
// the stream, so that it is taken back when the write is done.
func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	x.written += len(b)
	switch {
	case x.settings.bodyIdle <= 0:
	case x.stream:
		if now := time.Now(); x.deadline.Sub(now) < x.settings.bodyIdle*3/4 {
			x.bound(now)
		}
	case x.written > firstWrite:
		x.bound(time.Now())
		defer x.bound(time.Time{})
	}
	return x.ResponseWriter.Write(b)
}

// bound gives the client bodyIdle from then to read on; the zero time gives it for ever.
func (x *exchange) bound(then time.Time) {
	d, ok := x.ResponseWriter.(connection)
	if !ok || x.settings.bodyIdle <= 0 {
		return
	}
	x.deadline = time.Time{}
	if !then.IsZero() {
		x.deadline = then.Add(x.settings.bodyIdle)
	}
	_ = d.SetWriteDeadline(x.deadline)
}
