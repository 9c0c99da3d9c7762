package memcached_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/breaker"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/store/memcached"
)

// TestAwayServerSpendsNothingElsewhere: one group of a call is on a server with an open breaker.
// The call fails, and takes nothing on the other servers. Otherwise undecided requests would use
// up limits that many clients share.
func TestAwayServerSpendsNothingElsewhere(t *testing.T) {
	dies, lives := testserver.Start(t), testserver.Start(t)
	store := newStore(t, memcached.Config{
		Servers: []string{dies.Addr, lives.Addr}, Breaker: breaker.Config{Failures: 3, Probe: time.Minute, MaxProbe: time.Minute},
	})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1 << 20, Per: 24 * time.Hour}})
	keys := keysOn(t, store, id)
	dies.Kill()
	ask := func(ops ...headgate.Op) error {
		ctx, cancel := context.WithTimeout(t.Context(), beyondDeadlines)
		defer cancel()
		return store.Apply(ctx, ops, make([]headgate.Decision, len(ops)))
	}
	until(t, "the breaker opens", func() bool {
		return errors.Is(ask(headgate.Op{Key: keys[0], Policy: id, Cost: 1}), headgate.ErrUnavailable)
	})
	const cost = 1 << 10 // The limit refills more slowly: 12 units a second.
	before := remaining(t, store, keys[1], id)
	for _, groups := range [][2]uint8{{0, 0}, {0, 1}} {
		for range 20 {
			err := ask(
				headgate.Op{Key: keys[1], Policy: id, Group: groups[0], Cost: cost},
				headgate.Op{Key: keys[0], Policy: id, Group: groups[1], Cost: cost},
			)
			if !errors.Is(err, headgate.ErrUnavailable) {
				t.Fatalf("groups %v: %v, want ErrUnavailable", groups, err)
			}
		}
		// The estimated clock may have refilled some units before, and go back.
		if left := remaining(t, store, keys[1], id); before-left >= cost {
			t.Errorf("groups %v: %d units were spent by calls that failed", groups, before-left)
		}
	}
}
