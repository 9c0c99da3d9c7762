package client_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate/client"
	"github.com/headgate/headgate/guard"
)

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
