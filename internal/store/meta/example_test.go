package meta_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/store/meta"
)

// One write sends a counter that is created if missing and expires after a minute, and a value.
// There is no server at this address, and the error says that nothing was counted.
func Example() {
	client, err := meta.New(meta.Config{Addr: "127.0.0.1:1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	requests := []meta.Request{
		{Kind: meta.Increment, Key: "visits", Delta: 1, Initial: 1, Create: true, TTL: time.Minute},
		{Kind: meta.Get, Key: "greeting"},
	}
	responses := make([]meta.Response, len(requests))
	if err := client.Do(ctx, requests, responses); err != nil {
		fmt.Println("may have been counted:", meta.Sent(err))
		return
	}
	fmt.Println(responses[0].Number, responses[1].Status, string(responses[1].Value))
	// Output: may have been counted: false
}
