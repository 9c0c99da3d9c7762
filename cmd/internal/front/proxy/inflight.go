package proxy

import (
	"net/http"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/fields"
)

// handle serves a request that net/http has read.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	l, ok := s.lists.Get().(*http1.List)
	if !ok {
		l = new(http1.List)
	}
	l.Load(r.Header)
	defer func() {
		l.Reset()
		s.lists.Put(l)
	}()
	s.serve(w, r, l)
}

// serve takes a place for a request and records the response and its duration. The place
// is released when the last byte has been written, which is after serve returns. l has the fields of the
// request, and changes. r.Header is set when net/http serves the request, and is then out of date.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, l *http1.List) {
	conn := connOf(r)
	conn.enter(r)
	s.proxy.traffic.Served(conn.pathOf())
	c := clientConnOf(conn)
	if c != nil {
		c.sinceRequest.Store(0)
		c.asked()
	}
	if r.Context().Err() != nil {
		// The client closed the stream or the connection before the handler started. No
		// response is possible. Other streams of the connection continue.
		panic(http.ErrAbortHandler) //nolint:forbidigo // because net/http has no other way to abort.
	}
	now := time.Now()
	at := s.places.take(c, weigh(r, l), now)
	if at == nil {
		if c != nil {
			c.Abort()
		}
		panic(http.ErrAbortHandler) //nolint:forbidigo // because net/http has no other way to abort. The bound of 503 responses is reached.
	}
	at.startRequest(now)
	s.proxy.traffic.InFlight.Add(1)
	defer s.handled(w, r, c, at)
	e := s.enter(w, r, l, now)
	e.place = at
	finished := false
	defer func() { s.leave(e, finished) }() // The reverse proxy aborts a response with a panic.
	if at.refused {
		s.refuse(e, r)
	} else {
		s.proxy.ServeHTTP(e, r)
	}
	finished = true
}

// refuse answers 503 when there are too many requests. The response has no body: HTTP/2
// can send it without a flow-control window from the client.
func (s *Server) refuse(e *entry, r *http.Request) {
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		e.Header()["Connection"] = closeTable
		_ = e.SetReadDeadline(time.Now().Add(lingering)) // This bounds how long net/http discards the body.
	}
	e.Header()["Retry-After"] = spread()
	s.proxy.current.Load().cors.Own(fields.Map(e.Header()), e.fields)
	e.WriteHeader(http.StatusServiceUnavailable)
	s.proxy.traffic.Answered(report.OriginHeadgate, http.StatusServiceUnavailable)
}

var spreadTable = [...][]string{{"1"}, {"2"}}

// spread gives the Retry-After of a refusal whose end is not known.
func spread() []string { return spreadTable[guard.Spread()/time.Second-1] }

// handled counts how long the request took, and arranges the release of the place after the handler. net/http may still have
// buffered bytes of the response to write.
func (s *Server) handled(w http.ResponseWriter, r *http.Request, c *clientConn, at *place) {
	now := time.Now()
	at.observe(s.proxy.traffic, now, c != nil && c.hijacked)
	if stream, ok := w.(interface{ AfterClose(f func()) }); ok { // HTTP/2 on the fast path.
		at.startWait(now)
		s.boundRest(w, r)
		stream.AfterClose(func() { s.release(at) })
		return
	}
	// The request's context ends with the handler. Only CloseNotify reports that an HTTP/2
	// stream of net/http has closed.
	notifier, notifies := w.(http.CloseNotifier) //nolint:staticcheck // because only CloseNotify reports a closed stream.
	// An HTTP/1 writer can be hijacked and has no stream. This includes PRI * HTTP/2.0,
	// which net/http passes to the handler when it is not the start of an HTTP/2 connection.
	_, hijackable := w.(http.Hijacker)
	switch {
	case notifies && !hijackable:
		at.startWait(now)
		s.boundRest(w, r)
		closed := notifier.CloseNotify()
		go func() {
			<-closed
			s.release(at)
		}()
	case c == nil || c.hijacked:
		s.release(at)
	default:
		at.startWait(now)
		c.place = at // track releases the place.
	}
}

// boundRest bounds the time that the client has to read the rest of a response.
func (s *Server) boundRest(w http.ResponseWriter, r *http.Request) {
	if idle := s.proxy.current.Load().bodyIdle; idle > 0 && r.Context().Err() == nil {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(idle))
	}
}

// release releases a place and ends the request's ticket. The request is then no longer
// in flight.
func (s *Server) release(at *place) {
	t, o := at.ticket, at.outcome
	again := at.again
	at.ticket, at.outcome, at.again = nil, guard.Outcome{}, false
	defer s.proxy.traffic.InFlight.Add(-1) // The counter decreases even when a stage panics.
	defer s.places.release(at)
	if t != nil {
		t.Done(o)
		if again {
			s.proxy.tickets.Put(t)
		}
	}
}
