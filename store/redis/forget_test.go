package redis_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// TestForgottenByAnother: a Forget by one process takes effect for all processes. The remaining
// keys on the server expire.
func TestForgottenByAnother(t *testing.T) {
	for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.SlidingLog} {
		b := newBench(t, headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 10, Per: time.Minute}})
		other := newStore(t, b.addr, nil)
		prepare(t, other, headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 20, Per: time.Minute}})
		old := b.take("k", 10)
		if err := other.Forget(t.Context(), []headgate.Op{{Key: "k"}, {Key: "never seen"}}); err != nil {
			t.Fatal(err)
		}
		b.wantRemaining(a.String()+" after Forget", "k", 10)
		for _, key := range keys(t, b.client) {
			ttl, err := b.client.Do(t.Context(), b.client.B().Pttl().Key(key).Build()).AsInt64()
			if err != nil || ttl <= 0 || strings.HasSuffix(key, ":log") {
				t.Errorf("%s: key %s has a time to live of %d ms (error %v), want it to expire", a, key, ttl, err)
			}
		}
		b.take("k", 10)
		b.giveBack(old.Receipt)
		b.wantRemaining(a.String()+" after a new take and the return of an old receipt", "k", 0)
	}
}

// TestForgetSaysWhatFailed: a Forget on an unreachable server fails.
func TestForgetSaysWhatFailed(t *testing.T) {
	server := testserver.Start(t)
	store := newStore(t, server.Addr, nil)
	if err := store.Forget(t.Context(), []headgate.Op{{Key: "k"}}); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := store.Forget(ctx, []headgate.Op{{Key: "k"}}); err == nil || !strings.Contains(err.Error(), "could not forget") {
		t.Errorf("Forget without a server: got error %v, want one with \"could not forget\"", err)
	}
	if err := store.Forget(ctx, nil); err != nil {
		t.Errorf("Forget without Ops: %v", err)
	}
}
