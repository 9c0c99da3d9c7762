package proxy

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/cmd/internal/http1/server"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/middleware/httplimit"
)

// exchange is one request in progress and its ResponseWriter. Exchanges are pooled:
// nothing may keep one after the handler returns.
type exchange struct {
	http.ResponseWriter

	settings *settings
	decision httplimit.Exchange
	ticket   *guard.Ticket   // set for a forwarded request whose end a stage waits for, else nil
	ends     bool            // a stage may end the request; set with ticket
	client   context.Context //nolint:containedctx // because it says at the end whether the client has disconnected. Set with ticket.
	reported fields.Reported
	streams  fields.StreamDetector
	call     call
	fields   *http1.List                           // of the request
	own      http1.List                            // behind fields in tests without a Server
	informs  func(status int, h http.Header) error // inform, made once
	scan     *guard.Scan                           // reads the answer; nil if no rule settles by its body. Set with ticket.
	body     *body                                 // nil if the client sends no body
	place    *place                                // nil in tests without a Server

	status    int
	end       guard.End // how the request ended, if the handler knows
	forwarded bool      // to the service
	finished  bool      // the handler has returned without a panic
	// stream says that the connection has one request at a time: HTTP/1.
	stream bool
	// sends says that the request has a body.
	sends bool
	// counts says that the exchange counts the request as in flight. Usually the Server
	// does, up to the last byte written. counts is true only without a Server.
	counts    bool
	written   int
	sent      int64         // bytes of the response's body that the client's connection has taken
	upgraded  *upgraded     // nil unless a rule counts the bytes of an upgraded connection
	awaited   time.Duration // the time that reading the body before the decision took
	spent     bool          // the answer was ended because its key has no units left
	interim   int           // number of 1xx responses
	announced int           // number of the trailers that the header announces
}

// connection has the methods of net/http's writers that read and write bodies.
type connection interface {
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
	EnableFullDuplex() error
}

func (p *Proxy) take(w http.ResponseWriter, r *http.Request) *exchange {
	x, ok := p.pool.Get().(*exchange)
	if !ok {
		// The service may resolve paths and repeated fields in any way.
		x = &exchange{decision: httplimit.Exchange{ResolvePath: true, OneValue: true}}
		x.informs, x.decision.Body = x.inform, x.readAhead
	}
	x.ResponseWriter, x.settings = w, p.current.Load()
	x.decision.CORS, x.decision.Instance = x.settings.cors, x.settings.instance
	x.stream, x.sends = r.ProtoMajor == 1, r.Body != nil && r.ContentLength != 0
	if e := entryOf(w); e != nil {
		x.place, x.fields, x.decision.RequestID, x.decision.ID = e.place, e.fields, e.requestIDName(), e.id
	} else {
		x.own.Load(r.Header)
		x.fields = &x.own
	}
	if x.counts = x.place == nil; x.counts {
		p.traffic.InFlight.Add(1)
	}
	return x
}

// done counts the exchange and returns it to the pool. It also runs when the reverse proxy
// aborts the response with a panic. client is the context of the client's request.
func (p *Proxy) done(client context.Context, x *exchange) {
	if x.body != nil {
		x.body.end()
	}
	if x.counts {
		p.traffic.InFlight.Add(-1)
	}
	if x.ticket != nil {
		x.endTicket()
	}
	p.count(client, x)
	x.ResponseWriter, x.settings, x.body, x.place, x.ticket, x.ends, x.client = nil, nil, nil, nil, nil, false, nil
	x.call.answer.Header.Reset()
	x.own.Reset()
	x.fields, x.announced = nil, 0
	x.decision.Reset()
	x.reported, x.streams = fields.Reported{}, fields.StreamDetector{}
	x.status, x.end, x.written, x.interim, x.forwarded, x.finished = 0, guard.Answered, 0, 0, false, false
	x.sent, x.upgraded, x.scan, x.awaited, x.spent = 0, nil, nil, 0, false
	p.pool.Put(x)
}

// Hijack gives the connection to the reverse proxy for an upgrade.
func (x *exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, in, err := http.NewResponseController(x.ResponseWriter).Hijack()
	if err == nil {
		x.place.upgrade(time.Now())
	}
	if err != nil || x.ticket == nil {
		return conn, in, err //nolint:wrapcheck // because the reverse proxy compares the error.
	}
	notified := false
	defer func() {
		if !notified { // A stage has panicked, and nothing else closes the connection.
			_ = conn.Close()
		}
	}()
	x.streams.Header(http.StatusSwitchingProtocols, fields.Map(nil))
	x.streams.Stream()
	notified = true
	if x.ticket.CountsBytes() {
		x.upgraded = new(upgraded)
		conn = countedConn{conn, x.upgraded}
	}
	return conn, in, nil
}

// Unwrap implements the interface that http.ResponseController uses to set deadlines.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader adds the fields of the closest policy to the final response. From informational
// responses it removes only the fields for stages; the reverse proxy clears the header map
// after each.
func (x *exchange) WriteHeader(status int) {
	if status == http.StatusContinue {
		return // The server itself sends 100 when the body is first read.
	}
	h := fields.Map(x.Header())
	x.reported.Take(h) // An informational response has no private fields either.
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		if x.interim++; x.interim > mostInterim {
			return // The upstream's timeout still runs.
		}
	}
	if status >= http.StatusOK && x.status == 0 {
		keepType(x.Header())
		x.begins(status, h)
	}
	x.ResponseWriter.WriteHeader(status)
}

// WriteFields writes the header of a final response from a List, as WriteHeader does from a map. It changes l.
func (x *exchange) WriteFields(status int, l *http1.List) {
	x.reported.Take(l)
	if x.status == 0 {
		x.begins(status, l)
	}
	writeFields(x.ResponseWriter, status, l)
}

// begins notes that the final response begins, and adds the fields of the closest policy.
func (x *exchange) begins(status int, h fields.Header) {
	x.status = status
	if x.body != nil {
		x.body.answered()
	}
	if x.end == guard.Answered { // Else the answer is the proxy's own.
		x.streams.Header(status, h)
		if x.scan != nil {
			x.scan.Begin(status, firstLine(h, "Content-Type"), firstLine(h, "Content-Encoding"))
		}
	}
	x.decision.AnnounceFields(x.settings.style, h)
	if c := x.settings.cors; c != nil {
		c.Expose(h)
	}
	x.boundBody(h)
}

// keepType keeps net/http from guessing the Content-Type of a response without one. A nil
// value means that the field is not written.
func keepType(h http.Header) {
	if _, found := h["Content-Type"]; !found {
		h["Content-Type"] = nil
	}
}

// writeFields writes the header of a final response to w. It may change l.
func writeFields(w http.ResponseWriter, status int, l *http1.List) {
	if to, ok := w.(server.FieldsWriter); ok {
		to.WriteFields(status, l)
		return
	}
	h := w.Header()
	l.AddTo(h)
	keepType(h)
	w.WriteHeader(status)
}

// boundBody handles a body that is not read to its end when the response starts. If the
// request is forwarded, the unread bytes may be anything, so the connection closes after
// this response: the server must not parse them as a request. If the request is refused,
// the server discards the body before it closes, for at most bodyIdle.
func (x *exchange) boundBody(h fields.Header) {
	switch {
	case !x.stream:
	case x.body != nil && !x.body.ended.Load():
		h.Set("Connection", closeTable)
	case x.body == nil && x.sends && x.settings.bodyIdle > 0:
		now := time.Now()
		if from, ok := x.ResponseWriter.(connection); ok {
			_ = from.SetReadDeadline(now.Add(x.settings.bodyIdle))
		}
		if awaits := x.awaits(); awaits != nil {
			awaits.Await(now)
		}
	}
}

// awaits returns the connection of an HTTP/1 request, which is told when the request waits for its body; nil if it does not belong to
// package listen. An HTTP/2 connection has other streams.
func (x *exchange) awaits() listened {
	if !x.stream || x.place == nil || x.place.client == nil {
		return nil
	}
	conn, _ := x.place.client.Conn.(listened)
	return conn
}

// firstWrite is how much of a response HTTP/2 buffers without waiting for the client.
const firstWrite = 4 << 10

// Write implements http.ResponseWriter and bounds how long the client may leave the
// response unread.
func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	x.streams.Body(b)
	if x.scan != nil {
		if keep, stop := x.scan.Write(b); stop {
			return len(b), x.stop(b[:keep])
		}
	}
	return x.write(b)
}

// write is Write without a look at the bytes.
func (x *exchange) write(b []byte) (int, error) {
	x.written += len(b)
	if x.stream || x.written > firstWrite {
		x.startWrite()
		defer x.endWrite()
	}
	n, err := x.ResponseWriter.Write(b)
	x.sent += int64(n)
	return n, x.unsent(err)
}

// unsent notes that the client stopped reading the response.
func (x *exchange) unsent(err error) error {
	if err != nil {
		x.end = guard.ClientLeft
	}
	return err
}

// FlushError flushes and bounds how long the client may leave the flushed bytes unread.
func (x *exchange) FlushError() error {
	x.startWrite()
	defer x.endWrite()
	return x.unsent(http.NewResponseController(x.ResponseWriter).Flush())
}

// startWrite gives the client bodyIdle to read what is written next. For HTTP/1 the
// clientConn bounds each write. An HTTP/2 stream can also wait for its flow-control
// window, so it gets its own deadline, which ends only that stream.
func (x *exchange) startWrite() {
	now := time.Now()
	x.place.startWait(now)
	if !x.stream && x.settings.bodyIdle > 0 {
		x.bound(now.Add(x.settings.bodyIdle))
	}
}

// endWrite clears the deadline, because a stream may be silent while its service is.
func (x *exchange) endWrite() {
	x.place.endWait()
	if !x.stream && x.settings.bodyIdle > 0 {
		x.bound(time.Time{})
	}
}

func (x *exchange) bound(deadline time.Time) {
	if d, ok := x.ResponseWriter.(connection); ok {
		_ = d.SetWriteDeadline(deadline)
	}
}
