package open_test

import (
	"context"
	"fmt"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard"
)

// A program opens the store itself to read its Stats or to close it. Store does not wait for a
// server. In this example no server answers, so the rule falls back to its local part.
func ExampleStore() {
	c, err := config.Parse("headgate.yaml", []byte(`
version: 1
store: redis://limits:secret@127.0.0.1:1/2
local_share: 50%
rules:
  - {name: product, key: [all], algorithm: fixed_window, limits: ["2/360d"], fallback: local}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := open.Store(c, open.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	described, err := open.GuardConfig(c, store)
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := guard.New(described)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Shared)
	for range 2 {
		var a guard.Answer
		if err := g.Decide(context.Background(), &headgate.Request{Path: "/"}, &a); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(a.Verdict, a.Results[0].Decision.Reason)
	}
	// Output:
	// redis://limits:***@127.0.0.1:1/2
	// allow store_unavailable
	// deny store_unavailable
}
