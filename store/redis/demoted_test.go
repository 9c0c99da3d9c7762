package redis_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// TestForwarderFollowsTheMaster: one address leads to a master. The roles are swapped, the connection stays
// open, and new connections lead to the new master. Decisions are right within two seconds, although
// nothing closes the connection to the old master.
func TestForwarderFollowsTheMaster(t *testing.T) {
	old, next := testserver.Start(t), testserver.Start(t)
	next.Follow(old)
	link := network.New(t, old.Addr)
	store := open(t, redis.Config{
		Client:  rueidis.ClientOption{InitAddress: []string{link.Addr}},
		Breaker: breaker.Config{Probe: 10 * time.Minute, MaxProbe: 10 * time.Minute}, // It probes sooner after such a reply.
	})
	id := prepare(t, store, forever(headgate.FixedWindow, 1000))
	if _, err := take(store, id, "k", patience); err != nil {
		t.Fatal(err)
	}
	next.Promote()
	old.Follow(next)
	for store.Stats().Nodes[0].Opened == 0 { // The old master refuses all writes, so the breaker opens.
		if d, err := take(store, id, "k", patience); err == nil {
			t.Fatalf("a replica decided: %+v", d)
		}
	}
	link.Redirect(next.Addr)
	changed := time.Now()
	until(t, "a decision of the new master", func() bool { _, err := take(store, id, "k", patience); return err == nil })
	if elapsed := time.Since(changed); elapsed > 2*time.Second {
		t.Errorf("right after %v, want at most 2s", elapsed)
	}
}
