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

// perClient guards everything below a path, with two requests a minute for each client.
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

// ask sends a request to a handler and prints what came back.
func ask(h http.Handler, path, client string) {
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
		ask(h, "/v1/product", client)
	}
	// Output:
	// /v1/product a 200 "client";r=1;t=60
	// /v1/product a 200 "client";r=0;t=60
	// /v1/product a 429 "client";r=0;t=60
	// /v1/product b 200 "client";r=1;t=60
}

// The rules say which paths they speak for: one middleware before the whole mux.
func ExampleNew_serveMux() {
	g, err := perClient("/v1/*")
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/product", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	h := httplimit.New(g, httplimit.Options{ResolvePath: true})(mux) // Around the whole mux.

	ask(h, "/v1/product", "a")
	ask(h, "//v1/product", "a") // The rules and the mux see one path.
	ask(h, "/v1/product", "a")
	ask(h, "/health", "a")
	// Output:
	// /v1/product a 200 "client";r=1;t=60
	// //v1/product a 200 "client";r=0;t=60
	// /v1/product a 429 "client";r=0;t=60
	// /health a 200
}

// A capacity of four requests in ten seconds is shared by those who ask: nobody is
// configured, and who asks for more than its share leaves that of others alone.
func ExampleNew_fairShare() {
	share, err := guard.NewFairShare(4, "header:X-Client-Id")
	if err != nil {
		fmt.Println(err)
		return
	}
	share.Cycle = 10 * time.Second
	share.Weights = map[string]int64{"a": 1, "b": 1} // Known from the start; others may come.
	g, err := guard.New(guard.Config{FairShare: share, Clock: standing})
	if err != nil {
		fmt.Println(err)
		return
	}
	h := httplimit.New(g, httplimit.Options{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))

	for _, client := range []string{"a", "a", "b", "b"} {
		ask(h, "/v1/product", client)
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

// standing is a clock that does not move, so that this example always ends in one
// cycle. Programs leave Clock out.
func standing() headgate.Instant { return 0 }
