//go:build !race

package meta_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/internal/store/meta"
	"github.com/headgate/headgate/internal/testkit/memcached"
)

// TestAllocations: with reused requests and responses, neither the caller nor the client allocates.
func TestAllocations(t *testing.T) {
	c := open(t, meta.Config{Addr: memcached.Start(t).Addr, Connections: 1})
	requests := []meta.Request{
		{Kind: meta.Set, Key: "a", Value: []byte("0123456789")},
		{Kind: meta.Get, Key: "a"},
		{Kind: meta.Increment, Key: "n", Delta: 1, Create: true, TTL: time.Hour},
		{Kind: meta.Get, Key: "nobody"},
	}
	responses := make([]meta.Response, len(requests))
	ctx := t.Context()
	round := func() {
		if err := c.Do(ctx, requests, responses); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		round() // The first round grows the buffers.
	}
	if n := testing.AllocsPerRun(2000, round); n >= 1 {
		t.Errorf("%v allocations a Do of 4 requests, want less than 1", n)
	}
}
