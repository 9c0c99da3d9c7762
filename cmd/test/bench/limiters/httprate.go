package limiters

import (
	"net/http"

	"github.com/go-chi/httprate"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// httpRate calls the limiter as its middleware does, but without header fields, to
// measure only the decision.
type httpRate struct {
	noGoroutines

	limiter *httprate.RateLimiter
	request *http.Request
}

func newHTTPRate(l Limit, _ Room) (Keyed, error) {
	request, err := http.NewRequest(http.MethodGet, "/", http.NoBody) //nolint:noctx // The request is never sent.
	if err != nil {
		return nil, err
	}
	limiter := httprate.NewRateLimiter(l.Burst, Window, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
	return httpRate{limiter: limiter, request: request}, nil
}

func (h httpRate) Take(keys []string, from, n int) (t contest.Tally) {
	mask := len(keys) - 1
	w := unread{http.Header{}}
	for i := range n {
		countAnswer(&t, !h.limiter.OnLimit(w, h.request, keys[(from+i)&mask]))
	}
	return t
}

// unread is an http.ResponseWriter that discards the response.
type unread struct{ header http.Header }

func (u unread) Header() http.Header         { return u.header }
func (u unread) Write(b []byte) (int, error) { return len(b), nil }
func (u unread) WriteHeader(int)             {}
