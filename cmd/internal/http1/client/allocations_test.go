//go:build !race

// A pool drops some of its items under the race detector.

package client_test

import (
	"strings"
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

// TestSmallBodiesAllocateNothing checks requests whose body is sent with the head.
func TestSmallBodiesAllocateNothing(t *testing.T) {
	c := serve(t, "tcp", func(p *peer) {
		buf, text := make([]byte, 4<<10), []byte(plain)
		for {
			if _, err := p.Read(buf); err != nil { // One read has the head and the body.
				return
			}
			if _, err := p.Write(text); err != nil {
				return
			}
		}
	}).client(t, nil)
	ctx, text := newWatcher(t), strings.NewReader("")
	r, a := post(&atHand{text, 5}, 5), client.Answer{}
	allocs := testing.AllocsPerRun(200, func() {
		text.Reset("abcde")
		if err := c.Do(ctx, r, &a); err != nil {
			t.Fatal(err)
		}
		a.Buffered()
		a.Close()
	})
	if allocs > 1 {
		t.Errorf("%v allocations a request, want one for the header's text", allocs)
	}
}
