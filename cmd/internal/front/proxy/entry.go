package proxy

import (
	"bufio"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/accesslog"
	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/guard"
)

// entry is the access log line of a request in progress, and its ResponseWriter. Entries
// are pooled: nothing may keep one after the handler returns.
type entry struct {
	http.ResponseWriter

	server *Server
	access *access     // of the server when the request began
	conn   connection  // the ResponseWriter; nil in tests whose writer has no deadlines
	place  *place      // of the request in flight
	fields *http1.List // of the request
	id     string      // of the request; "" without ids
	from   address     // of the other end of the connection
	line   accesslog.Entry
	sent   time.Time // when the request went to the upstream
	keys   [2][]byte // reused buffers behind the keys of line
	named  []byte    // reused buffer behind the decision of line
	values []accesslog.Part
	texts  []byte      // reused buffer behind the texts of values
	rule   *guard.Rule // that decided; nil without one
}

// closeTable is the Connection field of the last response on a connection. For HTTP/2,
// net/http sends a GOAWAY instead.
var closeTable = []string{"close"}

func (s *Server) enter(w http.ResponseWriter, r *http.Request, l *http1.List, now time.Time) *entry {
	e, ok := s.entries.Get().(*entry)
	if !ok {
		e = &entry{server: s}
	}
	e.ResponseWriter, e.fields, e.access = w, l, s.access.Load()
	e.conn, _ = w.(connection)
	e.from = connOf(r).peerOf(r)
	e.line.Remote = e.from.Addr
	if s.requestID != "" {
		e.id = requestID(e.fields, s.requestID, s.trusts(e.line.Remote), now)
		e.fields.Put(s.requestID, e.id)
		keepEndToEnd(e.fields, s.requestID)
		e.line.RequestID = e.id
	}
	if e.access.log == nil {
		return e
	}
	e.line.Time = now
	e.line.Method, e.line.Host, e.line.URI, e.line.Proto = r.Method, r.Host, r.RequestURI, r.Proto
	e.line.UserAgent, e.line.Referer = e.fields.Get("User-Agent"), e.fields.Get("Referer")
	if r.TLS != nil {
		e.line.TLS = tls.VersionName(r.TLS.Version)
	}
	return e
}

// leave writes the line. An unfinished response was aborted by a panic. A handler that
// wrote nothing has sent status 200.
func (s *Server) leave(e *entry, finished bool) {
	if e.logs() {
		e.line.Duration = time.Since(e.line.Time)
		e.line.Aborted = !finished && e.line.Status != statusClientGone && e.line.Status != statusDropped
		if finished && e.line.Status == 0 {
			e.line.Status = http.StatusOK
		}
		if now := s.access.Load(); now.log != nil {
			now.log.Write(&e.line)
		}
	}
	clear(e.values)
	*e = entry{server: s, keys: e.keys, named: e.named, values: e.values, texts: e.texts}
	s.entries.Put(e)
}

// entryOf finds the entry under the writers that handlers have wrapped around it. It
// returns nil in tests without one.
func entryOf(w http.ResponseWriter) *entry {
	for {
		switch inner := w.(type) {
		case *entry:
			return inner
		case interface{ Unwrap() http.ResponseWriter }:
			w = inner.Unwrap()
		default:
			return nil
		}
	}
}

// peerOf returns the address of the other end of a request's connection. e is nil in tests.
func (e *entry) peerOf(r *http.Request) address {
	if e == nil {
		return addressOf(r.RemoteAddr)
	}
	return e.from
}

// requestIDName returns the header of the request's id, or "" when ids are off.
func (e *entry) requestIDName() string {
	if e == nil {
		return ""
	}
	return e.server.requestID
}

// requestIDValue returns the id of the request, or "" when ids are off.
func (e *entry) requestIDValue() string {
	if e == nil {
		return ""
	}
	return e.id
}

// logs reports whether the request has a line. e is nil in tests.
func (e *entry) logs() bool { return e != nil && e.access != nil && e.access.log != nil }

// decided notes the rules' decision on a request.
func (e *entry) decided(req *headgate.Request, a *guard.Answer) {
	if !e.logs() {
		return
	}
	e.identified(req)
	made := accesslog.Judgment{Verdict: a.Verdict.String()}
	if closest := a.Closest(); closest != nil {
		e.judged(&made, closest, 0)
		e.rule, e.line.Cost = closest.Rule, closest.Cost()
	}
	e.line.Verdict, e.line.Reason, e.line.Rule, e.line.Key = made.Verdict, made.Reason, made.Rule, made.Key
	if a.Verdict == headgate.Deny || a.Named() { // Else no other line names the decision.
		e.named = a.DecisionID().AppendTo(e.named[:0], e.access.instance)
		e.line.Decision = e.named
	}
	if shadowed := a.Shadowed(); shadowed != nil {
		e.line.Shadow.Verdict = shadowed.Decision.Verdict.String()
		e.judged(&e.line.Shadow, shadowed, 1)
	}
}

// judged notes the reason, the rule and the key of a result. buffer is the number of its key's buffer.
func (e *entry) judged(to *accesslog.Judgment, r *guard.Result, buffer int) {
	to.Reason, to.Rule = r.Decision.Reason.String(), r.Policy
	if e.line.DecidedAt == 0 { // Without an enforced rule, the time is that of the shadow rules.
		e.line.DecidedAt = int64(r.Decision.At) / 1000
	}
	if names := e.access.names; names != nil {
		e.keys[buffer] = r.AppendKey(e.keys[buffer][:0], names)
		to.Key = e.keys[buffer]
	}
}

// forwarded notes the time at which the request goes to the upstream.
func (e *entry) forwarded() {
	if e.logs() {
		e.sent = time.Now()
	}
}

// unanswered notes that the upstream did not respond. The status comes from the proxy.
func (e *entry) unanswered() {
	if e != nil && !e.sent.IsZero() {
		e.line.UpstreamDuration = time.Since(e.sent)
		e.sent = time.Time{}
	}
}

// abandoned notes that the client disconnected before its response.
func (e *entry) abandoned() {
	if e != nil && e.line.Status == 0 {
		e.answered(statusClientGone)
	}
}

// Unwrap implements the interface that http.ResponseController uses to flush.
func (e *entry) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// WriteHeader adds the request's id to the final response. While the server drains, it
// also asks the client to open a new connection.
func (e *entry) WriteHeader(status int) {
	if status >= http.StatusOK && e.line.Status == 0 {
		e.answered(status)
		e.identify()
		if e.server.draining.Load() {
			e.Header()["Connection"] = closeTable
		}
	}
	e.ResponseWriter.WriteHeader(status)
}

// WriteFields implements server.FieldsWriter. It adds what WriteHeader adds, to l.
func (e *entry) WriteFields(status int, l *http1.List) {
	if e.line.Status == 0 {
		e.answered(status)
		if e.id != "" {
			l.Put(e.server.requestID, e.id)
		}
		if e.server.draining.Load() {
			l.Put("Connection", "close")
		}
	}
	writeFields(e.ResponseWriter, status, l)
}

// identify adds the request's id to the header.
func (e *entry) identify() {
	if e.id != "" {
		e.Header()[e.server.requestID] = []string{e.id}
	}
}

func (e *entry) answered(status int) {
	e.line.Status = status
	if !e.sent.IsZero() {
		e.line.UpstreamStatus, e.line.UpstreamDuration = status, time.Since(e.sent)
	}
}

// Write implements http.ResponseWriter and counts the bytes.
func (e *entry) Write(b []byte) (int, error) {
	if e.line.Status == 0 {
		e.WriteHeader(http.StatusOK)
	}
	n, err := e.ResponseWriter.Write(b)
	e.line.Bytes += int64(n)
	return n, err
}

// Hijack returns the connection of a request that upgrades to another protocol.
func (e *entry) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(e.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	e.answered(http.StatusSwitchingProtocols)
	e.identify()
	if rw.Reader.Buffered() > 0 {
		conn = early{conn, rw.Reader}
	}
	return conn, rw, nil
}

// SetReadDeadline implements connection.
func (e *entry) SetReadDeadline(t time.Time) error {
	if e.conn == nil {
		return http.ErrNotSupported
	}
	return e.conn.SetReadDeadline(t)
}

// SetWriteDeadline implements connection.
func (e *entry) SetWriteDeadline(t time.Time) error {
	if e.conn == nil {
		return http.ErrNotSupported
	}
	return e.conn.SetWriteDeadline(t)
}

// EnableFullDuplex implements connection.
func (e *entry) EnableFullDuplex() error {
	if e.conn == nil {
		return http.ErrNotSupported
	}
	return e.conn.EnableFullDuplex()
}
