package prefetch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/testkit/versions"
)

// TestLateSpender: one instance takes a batch and spends it as late as possible. Another
// instance takes all remaining units. The sum keeps to the limit, by true times and by the
// decisions' times, at every phase of the window and for every network delay.
func TestLateSpender(t *testing.T) {
	hold := 40 * time.Millisecond
	for n, p := range heldPolicies(hold, 11) {
		t.Run(fmt.Sprintf("%s %d", p.Algorithm, n), func(t *testing.T) {
			served, ms := int64(0), time.Millisecond
			for _, way := range [][2]time.Duration{{0, 0}, {9 * ms, 0}, {0, 9 * ms}}[:seeds(3)] {
				for _, late := range []time.Duration{time.Millisecond, 5 * ms, 30 * ms, 38800 * time.Microsecond, 39900 * time.Microsecond, 45 * ms} {
					for _, before := range []time.Duration{500 * ms, 10 * ms, 25 * ms, 44 * ms}[:seeds(4)] {
						served += lateSpender(t, p, way, late, time.Second-before)
					}
				}
			}
			if served == 0 {
				t.Error("nothing was ever served from the stash")
			}
		})
	}
}

// lateSpender gives the number of units that the late instance served from its stash.
func lateSpender(t *testing.T, p headgate.Policy, way [2]time.Duration, late, phase time.Duration) int64 {
	t.Helper()
	clock := &manual{now: phase}
	shared := newSmallSource(t, clock.theirs)
	back := false // One call takes both ways once.
	shared.way = func(context.Context) error {
		if back {
			clock.advance(way[1])
		} else {
			clock.advance(way[0])
		}
		back = true
		return nil
	}
	w := &world{t: t, spends: map[string][]versions.Spend{}}
	held, greedy := behind(t, shared, quiet(clock)), behind(t, shared, quiet(clock))
	id := prepare(t, held, p)
	plain := p
	plain.Hold, plain.Batch = 0, 0
	p.Batch = 0 // The other instance prefetches nothing for a key with one request.
	other := prepare(t, greedy, p)
	ask := func(s *prefetch.Store, op headgate.Op, local bool) bool {
		d := make([]headgate.Decision, 1)
		if err := s.Apply(t.Context(), []headgate.Op{op}, d); err != nil {
			t.Fatal(err)
		}
		if d[0].Verdict != headgate.Allow {
			return false
		}
		truly := d[0].At
		if local {
			truly = clock.theirs()
		}
		w.spends["k"] = append(w.spends["k"], versions.Spend{At: d[0].At, Truly: truly, Cost: op.Cost})
		return true
	}
	mine, theirs := headgate.Op{Key: "k", Policy: id, Cost: 1}, headgate.Op{Key: "k", Policy: other, Cost: 9}
	drain := func() {
		for theirs.Cost = 9; theirs.Cost > 0; {
			if !ask(greedy, theirs, false) {
				theirs.Cost /= 2
			}
		}
	}
	ask(held, mine, false)
	clock.advance(max(0, late-way[1]))
	shared.way = nil
	served := int64(0)
	for stashLeft(held) > 0 {
		ask(held, mine, true)
		served++
	}
	if n := held.Stats().Asked; n != 0 {
		t.Fatalf("the stash had units left, and the source was asked %d times", n)
	}
	for range 280 {
		drain()
		clock.advance(4300 * time.Microsecond)
	}
	w.judge("k", plain, false)
	w.judge("k", plain, true)
	return served
}

// stashLeft gives the number of unspent units.
func stashLeft(s *prefetch.Store) uint64 {
	st := s.Stats()
	return st.Granted - st.Spent - st.Expired
}

func quiet(clock *manual) prefetch.Config {
	return prefetch.Config{Clock: clock.ours, DenyFor: -1, MaxKeys: 7}
}
