package http2

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	wire "golang.org/x/net/http2"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/cmd/internal/http1/server"
)

const (
	// mostFields bounds the fields of a header whose map is used again. Clearing a map costs time for each field that it ever had.
	mostFields = 64
	// mostKept bounds an empty buffer that a stream keeps, in bytes. The buffer has space for the longest frame.
	mostKept = 16 << 10
	// refusalTimeout bounds the time for the answer to a request that the handler of the server does not get.
	refusalTimeout = 10 * time.Second
)

// stream is one request and its response. Streams are pooled.
type stream struct {
	conn    *conn
	id      uint32
	ctx     *server.Context
	request *http.Request
	handler http.Handler // instead of the server's; nil for most
	url     url.URL
	header  http.Header
	values  []string // of header
	writer  writer
	timer   *time.Timer // wakes the stream when the time for a write is over
	wake    sync.Cond

	// The lock of the connection guards the fields below.
	body        *body // nil if the request has none
	remoteEnded bool  // the client has sent its last frame
	closed      bool  // nothing more is sent; err says why
	blocked     bool  // in conn.blocked
	sends       bool  // the write that waits is of data
	err         error
	sendWindow  int32
	deadline    time.Time // of writes
	onClose     func()
}

// newStream returns a stream that is not open yet.
func (c *conn) newStream(id uint32, ended bool) *stream {
	st, ok := c.server.streams.Get().(*stream)
	if !ok {
		st = &stream{header: http.Header{}}
		st.writer.header = http.Header{}
	}
	st.conn, st.id, st.remoteEnded, st.sendWindow = c, id, ended, c.initialWindow
	st.wake.L = &c.mu
	st.ctx = server.NewContext(c.Context)
	st.writer.begin(st)
	return st
}

// release ends the use of a stream: its handler has returned, and its last frame was written, or the stream was reset.
func (st *stream) release() {
	if st.onClose != nil {
		st.conn.callback(st.onClose)
	}
	if st.body != nil {
		st.body.end()
	}
	if st.timer != nil && !st.timer.Stop() {
		return // It may be about to wake the stream, which is therefore not used again.
	}
	s := st.conn.server
	clear(st.values)
	if st.header, st.values = emptied(st.header), st.values[:0]; cap(st.values) > mostFields {
		st.values = nil
	}
	st.writer = st.writer.emptied()
	st.conn, st.ctx, st.request, st.handler, st.timer, st.url = nil, nil, nil, nil, nil, url.URL{}
	st.body, st.remoteEnded, st.closed, st.blocked, st.err = nil, false, false, false, nil
	st.sendWindow, st.deadline, st.onClose, st.wake.L = 0, time.Time{}, nil, nil
	s.streams.Put(st)
}

// callback calls a function of a handler that has returned.
func (c *conn) callback(f func()) {
	defer func() {
		if fault := recover(); fault != nil {
			c.server.warnf("http2: panic after serving %v: %v\n%s", c.remote, fault, debug.Stack())
		}
	}()
	f()
}

func emptied(h http.Header) http.Header {
	if len(h) > mostFields {
		return http.Header{}
	}
	clear(h)
	return h
}

// prepare makes the request of a stream from the last header. It returns false if the header is malformed. The caller holds mu.
func (c *conn) prepare(st *stream) bool {
	var method, scheme, authority, path string
	h := &c.header
	for _, f := range h.fields[:h.pseudo] {
		switch f.Name {
		case ":method":
			method = f.Value
		case ":scheme":
			scheme = f.Value
		case ":authority":
			authority = f.Value
		case ":path":
			path = f.Value
		default:
			return false // Only extended CONNECT has :protocol.
		}
	}
	st.fill(h, c)
	if authority == "" {
		authority = st.header.Get("Host")
	}
	target := path
	switch {
	case method == http.MethodConnect:
		if path != "" || scheme != "" || authority == "" {
			return false
		}
		target = authority
		st.url = url.URL{Host: authority}
	case method == "" || path == "" || scheme != "https" && scheme != "http" || strings.IndexByte(authority, '@') >= 0:
		return false
	default:
		if !parseTarget(path, &st.url) {
			return false
		}
	}
	r := http.Request{
		Method: method, URL: &st.url, Proto: "HTTP/2.0", ProtoMajor: 2, Header: st.header, Body: http.NoBody, Host: authority,
		RequestURI: target, RemoteAddr: c.remote, Trailer: takeTrailer(st.header),
	}
	expects := httpguts.HeaderValuesContainsToken(st.header["Expect"], "100-continue")
	if expects {
		delete(st.header, "Expect")
	}
	if cookies := st.header["Cookie"]; len(cookies) > 1 {
		st.header["Cookie"] = []string{strings.Join(cookies, "; ")}
	}
	if !st.remoteEnded {
		r.ContentLength = lengthOf(st.header)
		st.body = newBody(st, r.ContentLength, r.Trailer, expects)
		r.Body = st.body
	}
	st.writer.toHead = method == http.MethodHead
	if st.handler = unservable(h, st.header); st.handler != nil {
		// No place of the proxy counts the request, so that it must not last, or keep its header.
		st.deadline = time.Now().Add(refusalTimeout)
		st.header, st.values, r.Header, r.Trailer = http.Header{}, nil, http.Header{}, nil
	}
	st.request = r.WithContext(st.ctx)
	return true
}

// parseTarget sets u to a target, as net/http reads it.
func parseTarget(target string, u *url.URL) bool {
	if target[0] == '/' {
		return !hasControl(target) && http1.ParseTarget(target, u) == nil
	}
	parsed, err := url.ParseRequestURI(target)
	if err == nil {
		*u = *parsed
	}
	return err == nil
}

// hasControl reports whether url.Parse refuses a target for its control characters.
func hasControl(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return true
		}
	}
	return false
}

// fill sets the header of a stream. All values are in one slice.
func (st *stream) fill(h *headerReader, c *conn) {
	st.values = st.values[:0]
	for _, f := range h.fields[h.pseudo:] {
		name := c.canonical(f.Name)
		if before, found := st.header[name]; found {
			st.header[name] = append(before, f.Value) // The slice has no space left, so that append copies it.
			continue
		}
		st.values = append(st.values, f.Value)
		n := len(st.values)
		st.header[name] = st.values[n-1 : n : n]
	}
}

// takeTrailer removes the field Trailer, and returns the names in it; nil without any.
func takeTrailer(h http.Header) http.Header {
	lines, found := h["Trailer"]
	if !found {
		return nil
	}
	delete(h, "Trailer")
	var names http.Header
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			switch name = http.CanonicalHeaderKey(strings.Trim(name, " \t\r\n")); name {
			case "Transfer-Encoding", "Trailer", "Content-Length":
			default:
				if names == nil {
					names = http.Header{}
				}
				names[name] = nil
			}
		}
	}
	return names
}

// lengthOf returns the length that a request declares: -1 without one, and 0 for an invalid one.
func lengthOf(h http.Header) int64 {
	lines, found := h["Content-Length"]
	if !found {
		return -1
	}
	n, err := strconv.ParseUint(lines[0], 10, 63)
	if err != nil {
		return 0
	}
	return int64(n)
}

// unservable returns a handler for a request that the handler of the server does not get, or nil.
func unservable(list *headerReader, h http.Header) http.Handler {
	if list.truncated {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
			_, _ = w.Write([]byte("<h1>HTTP Error 431</h1><p>Request Header Field(s) Too Large</p>"))
		})
	}
	for _, name := range [...]string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"} {
		if _, found := h[name]; found {
			return badRequest(fmt.Sprintf("request header %q is not valid in HTTP/2", name))
		}
	}
	if te := h["Te"]; len(te) > 1 || len(te) == 1 && te[0] != "trailers" && te[0] != "" {
		return badRequest(`request header "TE" may only be "trailers" in HTTP/2`)
	}
	return nil
}

func badRequest(why string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, why, http.StatusBadRequest) })
}

// serve calls the handler and ends its response.
func (st *stream) serve() {
	if !st.handle() {
		return
	}
	c := st.conn
	c.mu.Lock()
	defer c.unlock()
	st.finish()
}

// handle calls the handler. It returns false if the handler has panicked.
func (st *stream) handle() (returned bool) {
	c := st.conn
	defer func() {
		if fault := recover(); fault != nil {
			st.abort(fault)
		}
	}()
	handler := st.handler
	if handler == nil {
		handler = c.server.config.Handler
	}
	handler.ServeHTTP(&st.writer, st.request)
	st.ctx.End()
	return true
}

// abort resets a stream whose handler has panicked.
func (st *stream) abort(fault any) {
	c := st.conn
	if fault != http.ErrAbortHandler { //nolint:errorlint // A handler panics with this very value.
		c.server.warnf("http2: panic serving %v: %v\n%s", c.remote, fault, debug.Stack())
	}
	c.mu.Lock()
	defer c.unlock()
	if !st.closed {
		c.reset(st.id, wire.ErrCodeInternal, http.ErrAbortHandler)
	}
	c.dropped = append(c.dropped, st)
	c.handled()
	c.kick()
}

// finish ends the response, after the handler has returned. The caller holds mu.
func (st *stream) finish() {
	c := st.conn
	if !st.closed {
		_ = st.writer.end() // An error closes the stream.
	}
	c.handled()
	if st.closed && st.err != errComplete { //nolint:errorlint // end sets this very value.
		c.dropped = append(c.dropped, st)
		c.kick()
		return
	}
	c.gather()
	c.send()
}

// complete notes that the last frame of the response is queued. The caller holds mu.
func (st *stream) complete() {
	c := st.conn
	if !st.remoteEnded {
		c.queueReset(st.id, wire.ErrCodeNo) // The client need not send the rest of its body.
	}
	st.closed, st.err = true, errComplete
	delete(c.streams, st.id)
	if b := st.body; b != nil {
		c.giveBack(b.unread())
		b.fail(errBodyClosed)
	}
	c.queue.ended = append(c.queue.ended, st)
}

// endBody notes that the client has sent its last frame. The caller holds mu.
func (st *stream) endBody() {
	st.remoteEnded = true
	st.body.endOfStream()
}

// grow adds to the window of a stream, and wakes the stream if it waits for that. It returns false if the window is then too large.
// The caller holds mu.
func (st *stream) grow(n int32) bool {
	empty := st.sendWindow <= 0
	if !grow(&st.sendWindow, n) {
		return false
	}
	if empty && st.sendWindow > 0 && !st.blocked {
		st.wake.Broadcast()
	}
	return true
}

// wait waits until a frame, of data or another, may be sent. It may return earlier. It returns os.ErrDeadlineExceeded after the deadline.
// The caller holds mu.
func (st *stream) wait(data bool) error {
	c := st.conn
	if !st.deadline.IsZero() {
		left := time.Until(st.deadline)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		if st.timer == nil {
			st.timer = time.AfterFunc(left, func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				st.wake.Broadcast()
			})
		} else {
			st.timer.Reset(left)
		}
	}
	c.wakeNext() // This stream may have been woken, and leaves something to others.
	listed := !data || st.sendWindow > 0
	if st.sends, st.blocked = data, listed; listed {
		c.blocked = append(c.blocked, st)
	}
	st.wake.Wait()
	switch {
	case st.blocked:
		st.blocked = false
		c.blocked = slices.DeleteFunc(c.blocked, func(other *stream) bool { return other == st })
	case listed:
		c.woken = false
	}
	return nil
}
