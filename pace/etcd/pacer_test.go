package etcd

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// TestPacers: real pacers with too much demand use exactly the limit in every window, also while
// one joins and one leaves. A brake of one pacer stops all of them.
func TestPacers(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	const limit, per = 60, 100 * time.Millisecond
	f.set(limit, per, Even)
	var mu sync.Mutex
	given := map[headgate.Instant]int{}
	by := map[string]int{}
	begin := func(id string) *pace.Pacer {
		c := f.config
		c.Client, c.ID = newClient(t, f.server.Addr), id
		source, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		p, err := pace.New(pace.Config{Provider: provider, Source: source, Logger: c.Logger})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		var ask func(at headgate.Instant, err error)
		ask = func(at headgate.Instant, err error) {
			if err != nil {
				return // The pacer was closed.
			}
			mu.Lock()
			given[at-at%headgate.Instant(per)]++
			by[id]++
			mu.Unlock()
			go p.AcquireFunc(1, pace.Forever, ask)
		}
		for range 2 * limit {
			p.AcquireFunc(1, pace.Forever, ask)
		}
		ctx, cancel := context.WithTimeout(t.Context(), long)
		defer cancel()
		if err := p.Ready(ctx); err != nil {
			t.Errorf("%s: Ready: %v", id, err)
		}
		return p
	}
	full := func(what string) {
		t.Helper()
		since := wall()
		f.until(what, func() bool {
			mu.Lock()
			defer mu.Unlock()
			n := 0
			for start, units := range given {
				if start > since && units == limit {
					n++
				}
			}
			return n >= 3
		})
	}
	begin("a")
	full("one has the limit")
	b := begin("b")
	full("two have the limit")
	c := begin("c")
	full("three have the limit")
	b.Close()
	full("those who are left have the limit")
	c.Brake(pace.Brake{Until: time.Now().Add(time.Minute), Percent: 0, Reason: "stop"})
	f.until("all stop", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return given[wall()/headgate.Instant(per)*headgate.Instant(per)] == 0 && time.Now().UnixNano()%int64(per) > int64(per)*4/5
	})
	mu.Lock()
	defer mu.Unlock()
	for start, units := range given {
		if units > limit {
			t.Errorf("%d in the window at %v: want %d at most", units, start.Time(), limit)
		}
	}
	if len(by) != 3 {
		t.Errorf("%v: want all to have some", by)
	}
}
