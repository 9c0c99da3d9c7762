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
	h := httplimit.New(g, httplimit.Options{})(mux)

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
