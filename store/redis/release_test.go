package redis_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/storetest"
)

// TestReleasedPolicyOutlivesTakesInFlight: a take begins before its policy is released, and is
// counted up to a minute later. Its state expires before the policy is freed.
func TestReleasedPolicyOutlivesTakesInFlight(t *testing.T) {
	server := testserver.Start(t)
	clock := storetest.NewClock()
	store := newStore(t, server.Addr, clock.Now)
	p := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10, Per: time.Minute}}
	id := prepare(t, store, p)
	apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 1})
	store.Release(id)
	clock.Advance(time.Minute + limit.Life(p))
	other := headgate.Policy{Limit: headgate.Limit{Count: 1, Per: time.Second}}
	store.Release(prepare(t, store, other)) // Release frees expired policies.
	if again := prepare(t, store, p); again != id {
		t.Errorf("a minute after its life, the policy has the id %d, want %d: it was freed too early", again, id)
	}
	store.Release(id)
	clock.Advance(2*time.Minute + limit.Life(p))
	store.Release(prepare(t, store, other))
	if again := prepare(t, store, p); again == id {
		t.Error("two minutes after its life, the policy was not freed")
	}
}
