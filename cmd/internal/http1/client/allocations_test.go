//go:build !race

// A pool drops some of its items under the race detector.

package client_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1/client"
)

func TestAllocations(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		c := serve(t, network, tiny).client(t, func(c *client.Config) { c.Timeout, c.BodyIdle = time.Minute, time.Minute })
		ctx := newWatcher(t)
		r, a := get(), client.Answer{}
		r.Header = list(benchmarkHeader())
		allocs := testing.AllocsPerRun(200, func() {
			if err := c.Do(ctx, r, &a); err != nil {
				t.Fatal(err)
			}
			if body := a.Buffered(); string(body) != "hello" {
				t.Fatalf("body %q", body)
			}
			a.Close()
		})
		if allocs > 1 {
			t.Errorf("%s: %v allocations a request, want one for the header's text", network, allocs)
		}
	}
}
