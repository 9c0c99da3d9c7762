package redis_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// TestForgottenByAnother: what one process forgets is forgotten for all, and what
// stays of it expires.
func TestForgottenByAnother(t *testing.T) {
	for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.SlidingLog} {
		b := newBench(t, headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 10, Per: time.Minute}})
		other := newStore(t, b.addr, nil)
		prepare(t, other, headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 20, Per: time.Minute}})
		old := b.take("k", 10)
		if err := other.Forget(t.Context(), []headgate.Op{{Key: "k"}, {Key: "never seen"}}); err != nil {
			t.Fatal(err)
		}
		b.wantRemaining(a.String()+" forgotten", "k", 10)
		for _, key := range keys(t, b.client) {
			ttl, err := b.client.Do(t.Context(), b.client.B().Pttl().Key(key).Build()).AsInt64()
			if err != nil || ttl <= 0 || strings.HasSuffix(key, ":log") {
				t.Errorf("%s: %s stays for %d ms (%v)", a, key, ttl, err)
			}
		}
		b.take("k", 10)
		b.giveBack(old.Receipt)
		b.wantRemaining(a.String()+" taken again, and an old receipt returned", "k", 0)
	}
}

// TestForgetSaysWhatFailed: a server that is away has forgotten nothing.
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
		t.Errorf("no server: %v", err)
	}
	if err := store.Forget(ctx, nil); err != nil {
		t.Errorf("nothing to forget: %v", err)
	}
}
