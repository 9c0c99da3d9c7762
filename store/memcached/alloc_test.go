package memcached_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memcached"
)

// TestAllocations: a single decision makes a few small allocations, whatever its key: an item,
// its state and its bytes.
func TestAllocations(t *testing.T) {
	server := testserver.Start(t)
	for name, c := range map[string]struct {
		counters bool
		most     float64
	}{"item": {false, 18}, "counter": {true, 14}} {
		store := newStore(t, memcached.Config{Servers: []string{server.Addr}, Counters: c.counters})
		id := prepare(t, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1 << 20, Per: 24 * time.Hour}})
		ops, decisions := []headgate.Op{{Key: "customer-1", Policy: id, Cost: 1}}, make([]headgate.Decision, 1)
		got := testing.AllocsPerRun(500, func() {
			if err := store.Apply(t.Context(), ops, decisions); err != nil {
				t.Fatal(err)
			}
		})
		if got > c.most && !race.On { // With the race detector, pools drop values.
			t.Errorf("a decision on a lone %s allocates %v times, want at most %v", name, got, c.most)
		}
		t.Logf("%s: %v allocations", name, got)
		refund := []headgate.Op{{Key: "customer-1", Policy: id, Cost: 1, Kind: headgate.Refund}}
		got = testing.AllocsPerRun(200, func() {
			if err := store.Apply(t.Context(), refund, decisions); err != nil {
				t.Fatal(err)
			}
		})
		if got > c.most && !race.On {
			t.Errorf("a refund of a lone %s allocates %v times, want at most %v", name, got, c.most)
		}
		t.Logf("%s: %v allocations of a refund", name, got)
	}
}
