package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// perClient returns a guard for a path, with two requests per minute for each client.
func perClient(path string) (*guard.Guard, error) {
	store, err := memory.New(memory.Config{})
	if err != nil {
		return nil, err
	}
	client, err := rule.ParsePart("header:X-Client-Id")
	if err != nil {
		return nil, err
	}
	return guard.New(guard.Config{Store: store, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "client", Match: rule.Match{Path: path}, Key: []rule.Part{client}},
		Policies: []headgate.Policy{{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 2, Per: time.Minute}}},
	}}})
}

// request sends a request to a handler and prints the response.
func request(h http.Handler, path, client string) {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Header.Set("X-Client-Id", client)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(path, client, w.Code, w.Header().Get("RateLimit"))
}

func Example() {
	g, err := perClient("/*")
	if err != nil {
		fmt.Println(err)
		return
	}
	limited := httplimit.New(g, httplimit.Options{})
	h := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))

	for _, client := range []string{"a", "a", "a", "b"} {
		request(h, "/v1/product", client)
	}
	// Output:
	// /v1/product a 200 "client";r=1;t=60
	// /v1/product a 200 "client";r=0;t=60
	// /v1/product a 429 "client";r=0;t=60
	// /v1/product b 200 "client";r=1;t=60
}

// Rules select paths, so one middleware around the mux is enough.
func ExampleNew_serveMux() {
	g, err := perClient("/v1/*")
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/product", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	h := httplimit.New(g, httplimit.Options{ResolvePath: true})(mux) // ResolvePath is safe around the mux.

	request(h, "/v1/product", "a")
	request(h, "//v1/product", "a") // The rules and the mux see the same path.
	request(h, "/v1/product", "a")
	request(h, "/health", "a")
	// Output:
	// /v1/product a 200 "client";r=1;t=60
	// //v1/product a 200 "client";r=0;t=60
	// /v1/product a 429 "client";r=0;t=60
	// /health a 200
}

// Clients share a capacity of four requests per ten seconds. No client must be configured,
// and a client that exceeds its share does not reduce the shares of others.
func ExampleNew_fairShare() {
	share, err := guard.NewFairShare(4, "header:X-Client-Id")
	if err != nil {
		fmt.Println(err)
		return
	}
	share.Cycle = 10 * time.Second
	share.Weights = map[string]int64{"a": 1, "b": 1} // These clients are known from the start; others may join.
	g, err := guard.New(guard.Config{FairShare: share, Clock: fixedClock})
	if err != nil {
		fmt.Println(err)
		return
	}
	h := httplimit.New(g, httplimit.Options{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))

	for _, client := range []string{"a", "a", "b", "b"} {
		request(h, "/v1/product", client)
	}
	r := httptest.NewRequest(http.MethodGet, "/v1/product", http.NoBody)
	r.Header.Set("X-Client-Id", "a")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println("a", w.Code, w.Header().Get("RateLimit-Policy"))
	// Output:
	// /v1/product a 200 "fair_share";r=1;t=10
	// /v1/product a 200 "fair_share";r=0;t=10
	// /v1/product b 200 "fair_share";r=1;t=10
	// /v1/product b 200 "fair_share";r=0;t=10
	// a 429 "fair_share";q=2;w=10
}

// fixedClock is a clock that does not advance, so that this example stays in one cycle.
// Programs omit Clock.
func fixedClock() headgate.Instant { return 0 }
