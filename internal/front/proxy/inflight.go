package proxy

import (
	"net/http"
	"time"

	"github.com/headgate/headgate/guard"
)

// handle takes a place for a request, notes its answer and how long it took. The place
// is released when the last byte has been written, which is after handle.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	conn := connOf(r)
	conn.enter(r)
	c := below(conn)
	if r.Context().Err() != nil {
		// The client has reset the stream before its handler began, or closed the connection. Nothing
		// can be answered, and the other streams of the connection go on.
		panic(http.ErrAbortHandler) //nolint:forbidigo // because net/http knows no other way.
	}
	at := s.places.take(c, weigh(r), time.Now())
	if at == nil {
		if c != nil {
			c.abort()
		}
		panic(http.ErrAbortHandler) //nolint:forbidigo // because net/http knows no other way; as many are answered 503 as may be.
	}
	s.proxy.traffic.InFlight.Add(1)
	defer s.handled(w, r, c, at)
	e := s.enter(w, r)
	e.place = at
	finished := false
	defer func() { s.leave(e, finished) }() // The reverse proxy aborts an answer by a panic.
	if at.refused {
		s.refuse(e, r)
	} else {
		s.proxy.ServeHTTP(e, r)
	}
	finished = true
}

// refuse answers that there are too many requests, in a form that needs nothing of the
// client: HTTP/2 sends fields alone, for which there is no window.
func (s *Server) refuse(e *entry, r *http.Request) {
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		e.Header()["Connection"] = closeTable
		_ = e.SetReadDeadline(time.Now().Add(lingering)) // What net/http reads over the body for.
	}
	e.Header()["Retry-After"] = oneSecondTable
	e.WriteHeader(http.StatusServiceUnavailable)
	s.proxy.traffic.Answered(http.StatusServiceUnavailable)
}

var oneSecondTable = []string{"1"}

// handled has the place released when the answer is over. net/http still has its end
// to write: what the handler wrote last may be in its buffers.
func (s *Server) handled(w http.ResponseWriter, r *http.Request, c *clientConn, at *place) {
	// The context ends with the handler, and nothing else tells when a stream is closed.
	notifier, notifies := w.(http.CloseNotifier) //nolint:staticcheck // because of that.
	// A writer of HTTP/1 can be hijacked, and has no stream that is closed: not even one
	// for PRI * HTTP/2.0, which net/http passes on when it begins no connection of HTTP/2.
	_, alone := w.(http.Hijacker)
	switch {
	case notifies && !alone:
		at.waits(time.Now())
		if idle := s.proxy.current.Load().bodyIdle; idle > 0 && r.Context().Err() == nil {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(idle))
		}
		closed := notifier.CloseNotify()
		go func() {
			<-closed
			s.release(at)
		}()
	case c == nil || c.hijacked:
		s.release(at)
	default:
		at.waits(time.Now())
		c.place = at // track releases it.
	}
}

// release gives a place back; its request is no longer in flight.
func (s *Server) release(at *place) {
	t, o := at.ticket, at.outcome
	at.ticket, at.outcome = nil, guard.Outcome{}
	defer s.proxy.traffic.InFlight.Add(-1) // Though a stage panics.
	defer s.places.release(at)
	if t != nil {
		t.Done(o)
	}
}
