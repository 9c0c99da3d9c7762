package memcached_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/store/memcached"
)

// TestRefundMakesNoItem: a Refund of a new key stores nothing.
func TestRefundMakesNoItem(t *testing.T) {
	server := testserver.Start(t)
	for _, counters := range []bool{false, true} {
		store := newStore(t, memcached.Config{Servers: []string{server.Addr}, Counters: counters})
		for _, p := range []headgate.Policy{
			{Limit: headgate.Limit{Count: 3, Per: time.Minute}},
			{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 3, Per: time.Minute}},
			{Algorithm: headgate.SlidingWindow, SubWindows: 4, Limit: headgate.Limit{Count: 3, Per: time.Minute}},
		} {
			op := headgate.Op{Key: "k", Policy: prepare(t, store, p), Window: uint8(p.Algorithm), Cost: 2, Kind: headgate.Refund}
			if d := apply(t, store, op)[0]; d.Verdict != headgate.Allow || d.Remaining != 3 {
				t.Errorf("%s: a refund of a new key: %+v", p.Algorithm, d)
			}
		}
	}
	for _, line := range say(t, server.Addr, "stats") {
		if items, ok := strings.CutPrefix(line, "STAT curr_items "); ok && items != "0" {
			t.Errorf("refunds of new keys stored %s items", items)
		}
	}
}

// TestRefundsTogether: many callers take and refund one key at the same time. Each refund gives
// back its units, or fails with ErrContended and changes nothing.
func TestRefundsTogether(t *testing.T) {
	server := testserver.Start(t)
	for name, counters := range map[string]bool{"item": false, "counter": true} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t, memcached.Config{Servers: []string{server.Addr}, Counters: counters})
			id := prepare(t, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1000, Per: 24 * time.Hour}})
			var counted atomic.Int64
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for i := range 40 {
						op, d := headgate.Op{Key: name, Policy: id, Cost: 2}, make([]headgate.Decision, 1)
						if err := store.Apply(t.Context(), []headgate.Op{op}, d); err != nil {
							t.Error(err)
							return
						}
						counted.Add(2)
						op.Kind, op.Cost = headgate.Refund, int64(1+i%2)
						switch err := store.Apply(t.Context(), []headgate.Op{op}, d); {
						case err == nil:
							counted.Add(-op.Cost)
						case !errors.Is(err, memcached.ErrContended):
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if left := remaining(t, store, name, id); left != 1000-counted.Load() {
				t.Errorf("%d of 1000 remain, and %d are counted", left, counted.Load())
			}
		})
	}
}
