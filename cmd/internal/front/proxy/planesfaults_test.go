package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate/guard/report"
)

// TestPlanesFindFaults breaks one of two equal planes in many ways. The comparison must find
// each fault, in the facts where it shows.
func TestPlanesFindFaults(t *testing.T) {
	get := "GET /x/many?q HTTP/1.1\r\nHost: a.example\r\nX-Api-Key: k\r\nX: 1\r\nX: 2\r\nCookie: session=s\r\n\r\n"
	post := "POST /x/empty HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello"
	for name, c := range map[string]struct {
		sent, want string
		tamper     tampering
	}{
		"another method":           {get, "upstream 1", onRequest(func(r *http.Request) { r.Method = "POST" })},
		"another target":           {get, "upstream 1", onRequest(func(r *http.Request) { r.URL.RawQuery = "" })},
		"another host":             {get, "upstream 1 field", onRequest(func(r *http.Request) { r.Host = "b.example" })},
		"a missing field":          {get, "upstream 1 field", onRequest(func(r *http.Request) { delete(r.Header, "X-Api-Key") })},
		"a new field":              {get, "upstream 1 field", onRequest(func(r *http.Request) { r.Header["X-New"] = []string{"1"} })},
		"a missing value":          {get, "upstream 1 field", onRequest(func(r *http.Request) { r.Header["X"] = r.Header["X"][:1] })},
		"values in another order":  {get, "another order", onRequest(func(r *http.Request) { r.Header["X"] = []string{"2", "1"} })},
		"joined values":            {get, "upstream 1 field", onRequest(func(r *http.Request) { r.Header["X"] = []string{"1, 2"} })},
		"a changed value":          {get, "upstream 1 field", onRequest(func(r *http.Request) { r.Header["Cookie"][0] += ";" })},
		"a shorter body":           {post, "upstream 1 body", onRequest(shortened)},
		"an unknown length":        {post, "upstream 1 length", onRequest(func(r *http.Request) { r.ContentLength = -1 })},
		"a request twice":          {get, "upstream 2", onHandler(twice)},
		"another status":           {get, "answer 1", onResponse(func(r *http.Response) { r.StatusCode = 201 })},
		"a missing response field": {get, "answer 1 field", onResponse(func(r *http.Response) { delete(r.Header, "X-Empty") })},
		"a missing response value": {get, "answer 1 field", onResponse(func(r *http.Response) { r.Header["Set-Cookie"] = r.Header["Set-Cookie"][1:] })},
		"another response body":    {get, "answer 1 body", onResponse(changedBody)},
		"a closed connection": {get, "ended by: the proxy", onHandler(func(_ *plane, _ http.Handler, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
		})},
		"a second answer":           {get, "answer 2", onConn(func(c net.Conn) net.Conn { return &echoing{c, "", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"} })},
		"bytes after the answer":    {get, "answer 2 is malformed", onConn(func(c net.Conn) net.Conn { return &echoing{c, "", "x\r\n\r\n"} })},
		"a byte before the request": {get, "answer 1", onConn(func(c net.Conn) net.Conn { return &echoing{c, " ", ""} })},
		"a line end before it":      {get, "answer 1", onConn(func(c net.Conn) net.Conn { return &echoing{c, "\r\n", ""} })},
		"a wrong count": {get, "counted", onHandler(func(p *plane, _ http.Handler, _ http.ResponseWriter, _ *http.Request) {
			p.traffic.Answered(report.OriginService, 200)
		})},
		"a failure that was none":  {get, "counted", onHandler(func(p *plane, _ http.Handler, _ http.ResponseWriter, _ *http.Request) { p.traffic.UpstreamFailed(0) })},
		"a request left in flight": {get, "counted", onHandler(func(p *plane, _ http.Handler, _ http.ResponseWriter, _ *http.Request) { p.traffic.InFlight.Add(1) })},
		"no decision":              {get, "verdict 1", onHandler(func(_ *plane, _ http.Handler, _ http.ResponseWriter, r *http.Request) { r.Method = "CONNECT" })},
		"another view of the rules": {get, "verdict 1", onHandler(func(_ *plane, _ http.Handler, _ http.ResponseWriter, r *http.Request) {
			r.Header.Set("X-Api-Key", "forged")
		})},
		"another line in the log":    {get, "log 1", onHandler(func(_ *plane, _ http.Handler, _ http.ResponseWriter, r *http.Request) { r.RequestURI += "&" })},
		"the peer's trust ignored":   {get, "log 1", onHandler(func(_ *plane, _ http.Handler, _ http.ResponseWriter, r *http.Request) { r.RemoteAddr = "127.0.0.2:1" })},
		"a plane without any change": {get, "", tampering{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, planeSetup{tamper: c.tamper})
				defer p.stop()
				found := p.compare(said(name, c.sent))
				if c.want == "" && found != "" || !strings.Contains(found, c.want) {
					t.Errorf("got the difference %q, want one with %q", found, c.want)
				}
				p.fast.traffic.InFlight.Store(0) // For the drain.
			})
		})
	}
}

func onRequest(f func(*http.Request)) tampering   { return tampering{request: f} }
func onResponse(f func(*http.Response)) tampering { return tampering{response: f} }
func onConn(f func(net.Conn) net.Conn) tampering  { return tampering{conn: f} }

// onHandler calls f before the proxy serves a request.
func onHandler(f func(*plane, http.Handler, http.ResponseWriter, *http.Request)) tampering {
	return tampering{handler: func(p *plane, inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f(p, inner, w, r)
			inner.ServeHTTP(w, r)
		})
	}}
}

// twice serves a request once more, without its answer.
func twice(_ *plane, inner http.Handler, _ http.ResponseWriter, r *http.Request) {
	inner.ServeHTTP(discarding{http.Header{}}, r.Clone(r.Context()))
}

type discarding struct{ header http.Header }

func (d discarding) Header() http.Header         { return d.header }
func (d discarding) Write(p []byte) (int, error) { return len(p), nil }
func (d discarding) WriteHeader(int)             {}

func shortened(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body[1:])), int64(len(body)-1)
}

func changedBody(r *http.Response) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(strings.ToUpper(fmt.Sprintf("%-*x", len(body), 0))))
}

// echoing adds bytes before the first request and after the first write of a client.
type echoing struct {
	net.Conn

	before, after string
}

func (e *echoing) Read(p []byte) (int, error) {
	n := copy(p, e.before)
	if e.before = e.before[n:]; n > 0 {
		return n, nil
	}
	return e.Conn.Read(p)
}

func (e *echoing) Write(p []byte) (int, error) {
	n, err := e.Conn.Write(append(bytes.Clone(p), e.after...))
	e.after = ""
	return min(n, len(p)), err
}

// CloseWrite closes the sending side of the connection.
func (e *echoing) CloseWrite() error { return e.Conn.(*memoryConn).CloseWrite() }
