package proxy

import (
	"bufio"
	"net"
	"net/http"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
)

// exchange is one request on its way and the writer of its answer. It is taken
// from a pool and given back when the handler returns; nothing keeps it longer.
type exchange struct {
	http.ResponseWriter

	settings *settings
	asked    httplimit.Exchange
	ticket   *guard.Ticket // of a forwarded request whose end a stage waits for; nil else
	left     func() error  // of a forwarded request with a ticket: whether its client has left
	body     *body         // nil when the client sends none
	place    *place        // nil without a Server, in tests

	status   int
	end      guard.End // how the request ended, where the handler knows that
	finished bool      // the handler has not panicked
	// stream is a connection with one request at a time: HTTP/1.
	stream bool
	// sends says that the request has a body.
	sends bool
	// counts says that the exchange itself counts as in flight: without a Server, which
	// counts a request to its last byte.
	counts  bool
	written int
	interim int // answers of class 1xx
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
	if e := entryOf(w); e != nil {
		x.place = e.place
	}
	if x.counts = x.place == nil; x.counts {
		p.traffic.InFlight.Add(1)
	}
	return x
}

// done counts the exchange and gives it back. It runs too when the reverse proxy
// aborts the answer, which it does by a panic.
func (p *Proxy) done(x *exchange) {
	if x.body != nil {
		x.body.end()
	}
	if x.counts {
		p.traffic.InFlight.Add(-1)
	}
	if x.ticket != nil {
		x.endTicket()
	}
	switch {
	case x.status == 0:
		p.traffic.Answered(http.StatusSwitchingProtocols)
	case x.status == statusClientGone:
		p.traffic.Answered(0)
	default:
		p.traffic.Answered(x.status)
	}
	x.ResponseWriter, x.settings, x.body, x.place, x.ticket, x.left = nil, nil, nil, nil, nil, nil
	x.asked.Reset()
	x.status, x.end, x.written, x.interim, x.finished = 0, guard.Answered, 0, 0, false
	p.pool.Put(x)
}

// Hijack gives the connection to the reverse proxy, for an upgrade.
func (x *exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, in, err := http.NewResponseController(x.ResponseWriter).Hijack()
	if err != nil || x.ticket == nil {
		return conn, in, err //nolint:wrapcheck // The reverse proxy compares it.
	}
	told := false
	defer func() {
		if !told { // A stage has panicked: nothing else closes the connection.
			_ = conn.Close()
		}
	}()
	x.ticket.Stream()
	told = true
	return conn, in, nil
}

// Unwrap lets http.ResponseController set deadlines.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader adds the fields of the closest policy to the final answer. Those of
// informational answers are the upstream's alone, and the reverse proxy clears
// the map after each.
func (x *exchange) WriteHeader(status int) {
	if status == http.StatusContinue {
		return // The server says so itself when the body is first read, which the upstream's word starts.
	}
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		if x.interim++; x.interim > mostInterim {
			return // The upstream's timeout goes on.
		}
	}
	if status >= http.StatusOK && x.status == 0 {
		x.status = status
		if x.body != nil {
			x.body.answered()
		}
		x.asked.Announce(x.settings.style, x.Header())
		if x.stream {
			x.part()
		}
	}
	x.ResponseWriter.WriteHeader(status)
}

// part sees to the rest of a body whose request is answered before its end. The rest of
// one that is forwarded may be anything, and what follows is never taken for a request:
// the connection ends with this answer. One that was never read, of a request that is
// refused, is read over by the server first, which waits for it no longer than bodyIdle.
func (x *exchange) part() {
	switch {
	case x.body != nil && !x.body.ended.Load():
		x.Header()["Connection"] = closeTable
	case x.body == nil && x.sends && x.settings.bodyIdle > 0:
		if from, ok := x.ResponseWriter.(connection); ok {
			_ = from.SetReadDeadline(time.Now().Add(x.settings.bodyIdle))
		}
	}
}

// firstWrite is how much of an answer HTTP/2 takes without waiting for the client.
const firstWrite = 4 << 10

// Write bounds how long a client may leave an answer unread.
func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	x.written += len(b)
	if x.stream || x.written > firstWrite {
		x.begin()
		defer x.rest()
	}
	n, err := x.ResponseWriter.Write(b)
	return n, x.unsent(err)
}

// unsent notes that the client takes no more of the answer.
func (x *exchange) unsent(err error) error {
	if err != nil {
		x.end = guard.ClientLeft
	}
	return err
}

// FlushError bounds how long a client may leave unread what is flushed.
func (x *exchange) FlushError() error {
	x.begin()
	defer x.rest()
	return x.unsent(http.NewResponseController(x.ResponseWriter).Flush())
}

// begin gives the client bodyIdle for what is written next. Of HTTP/1 the connection
// bounds each write; a stream of HTTP/2 waits for its window, and has a deadline of its
// own, which ends the stream.
func (x *exchange) begin() {
	now := time.Now()
	x.place.waits(now)
	if !x.stream && x.settings.bodyIdle > 0 {
		x.bound(now.Add(x.settings.bodyIdle))
	}
}

// rest takes the deadline back: a stream may be silent for as long as its service is.
func (x *exchange) rest() {
	x.place.goesOn()
	if !x.stream && x.settings.bodyIdle > 0 {
		x.bound(time.Time{})
	}
}

func (x *exchange) bound(deadline time.Time) {
	if d, ok := x.ResponseWriter.(connection); ok {
		_ = d.SetWriteDeadline(deadline)
	}
}
