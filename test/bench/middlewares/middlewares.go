// Package middlewares puts Headgate's middleware for net/http and those of its
// peers behind one face, each with the fields that tell a client of its limit.
//
// Every side counts by the header X-Client-Id, in memory, and is held to the
// limits of package limiters.
package middlewares

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/headgate/headgate/test/bench/contest"
	"github.com/headgate/headgate/test/bench/limiters"
)

// Bare is the handler without a middleware: what every side costs at least.
const Bare = "bare handler"

// header is what all sides count by.
const header = "X-Client-Id"

// Maker makes one of the sides around a handler.
type Maker struct {
	Name string
	Kind contest.Kind
	// MayFail is that of contest.Side.
	MayFail bool
	New     func(limiters.Limit, http.Handler) (http.Handler, error)
}

// All lists the bare handler, ours and the peers.
func All() []Maker {
	bare := func(_ limiters.Limit, next http.Handler) (http.Handler, error) { return next, nil }
	return append([]Maker{
		{Name: Bare, Kind: contest.Floor, New: bare},
		{Name: Headgate, Kind: contest.Ours, New: newHeadgate},
		{Name: HeadgateX, Kind: contest.Ours, New: newHeadgateX},
	}, Peers()...)
}

// Staged lists the bare handler, and ours without a stage and with one.
func Staged() []Maker {
	return append(All()[:2:2], Maker{Name: HeadgateStage, Kind: contest.Ours, New: newHeadgateStage})
}

// Service is the handler that is guarded: it answers with nothing.
func Service() http.Handler { return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}) }

// Requests gives a request of each of n clients, as a server would read it.
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

// Serve lets a handler answer n requests, from the one at from on, and tells the
// answers by their status. The number of requests is a power of two.
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

// unread is a response that nobody reads. It is used again and again, so that it
// costs no side anything.
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
