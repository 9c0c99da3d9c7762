package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/headgate/headgate/client"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
)

// Middleware takes the guard of a client in place of one with rules. Nothing listens at the address of this example,
// so the fallback decides.
func ExampleClient_Guard() {
	decisions, err := client.New(client.Config{
		Servers:  []string{"127.0.0.1:1"}, // server.grpc of headgate server
		Timeout:  20 * time.Millisecond,
		Fallback: guard.FallbackAllow,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer decisions.Close()

	limited := httplimit.New(decisions.Guard(), httplimit.Options{})
	service := limited(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "served") }))
	answer := httptest.NewRecorder()
	service.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/search", http.NoBody))
	fmt.Println(answer.Code, answer.Body)
	// Output: 200 served
}

// A program asks the decision service before it works on a request. Nothing listens at the address of this
// example, so the fallback decides.
func ExampleClient_Decide() {
	decisions, err := client.New(client.Config{
		Servers:  []string{"127.0.0.1:1"}, // server.grpc of headgate server
		Timeout:  20 * time.Millisecond,
		Fallback: guard.FallbackAllow,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer decisions.Close()

	answer, err := decisions.Decide(context.Background(), &client.Request{
		Method: "GET", Path: "/search", Headers: map[string]string{"X-Client-Id": "a"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Verdict, answer.Reason, answer.Local)
	// Output: allow store_unavailable true
}
