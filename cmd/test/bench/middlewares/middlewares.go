// Package middlewares puts Headgate's middleware for net/http and its peers behind one
// interface. Each middleware sends the header fields that report the limit to the client.
//
// Each side counts by the header X-Client-Id, in memory, with the limits of package
// limiters.
package middlewares

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
)

// Bare is the name of the handler without a middleware, a lower limit for all sides.
const Bare = "bare handler"

// header is the name of the header that identifies the client for all sides.
const header = "X-Client-Id"

// Maker creates a side that wraps a handler.
type Maker struct {
	Name string
	Kind contest.Kind
	// MayFail has the meaning of contest.Side.MayFail.
	MayFail bool
	New     func(limiters.Limit, http.Handler) (http.Handler, error)
}

// All returns the bare handler, Headgate's sides and the peers.
func All() []Maker {
	bare := func(_ limiters.Limit, next http.Handler) (http.Handler, error) { return next, nil }
	return append([]Maker{
		{Name: Bare, Kind: contest.Floor, New: bare},
		{Name: Headgate, Kind: contest.Ours, New: newHeadgate},
		{Name: HeadgateX, Kind: contest.Ours, New: newHeadgateX},
	}, Peers()...)
}

// Staged returns the bare handler, httplimit without a stage, and httplimit with a stage.
func Staged() []Maker {
	return append(All()[:2:2], Maker{Name: HeadgateStage, Kind: contest.Ours, New: newHeadgateStage})
}

// Service returns the handler behind the middleware. It writes an empty response.
func Service() http.Handler { return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}) }

// Requests returns one request for each of n clients, as a server would read it.
func Requests(n int) []*http.Request {
	requests := make([]*http.Request, n)
	for i := range requests {
		requests[i] = &http.Request{
			Method: http.MethodGet, URL: &url.URL{Path: "/v1/product"}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Host: "api.example.com", RemoteAddr: "192.0.2.1:50000", RequestURI: "/v1/product", Body: http.NoBody,
			Header: http.Header{
				header:       {clientName(i)},
				"User-Agent": {"bench"}, "Accept": {"*/*"}, "Accept-Encoding": {"gzip"},
			},
		}
	}
	return requests
}

func clientName(i int) string { return fmt.Sprintf("customer-%07d", i) }

// Serve passes n requests to the handler, beginning with requests[from], and counts the
// responses by status. The number of requests is a power of two.
func Serve(h http.Handler, requests []*http.Request, from, n int) (t contest.Tally) {
	w := unread{header: http.Header{}}
	mask := len(requests) - 1
	for i := range n {
		clear(w.header)
		w.status = http.StatusOK
		h.ServeHTTP(&w, requests[(from+i)&mask])
		switch w.status {
		case http.StatusOK:
			t.Allowed++
		case http.StatusTooManyRequests:
			t.Denied++
		default:
			t.Failed++
		}
	}
	return t
}

// unread is a response that is discarded. Serve reuses it for all requests, so that no
// side allocates a response.
type unread struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (u *unread) Header() http.Header { return u.header }

// Write implements http.ResponseWriter.
func (u *unread) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (u *unread) WriteHeader(status int) { u.status = status }
