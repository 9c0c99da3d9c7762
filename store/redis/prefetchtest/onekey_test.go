package prefetchtest

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/store/prefetch"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/redis"
)

// TestResetOfAKeyAhead: two instances take units ahead, and both remember that the key is refused. After a reset, the
// instance that does it admits at once, and the other one after at most DenyFor. Together they admit the limit once
// more, and at most the units that the other one held.
func TestResetOfAKeyAhead(t *testing.T) {
	const limit = 200
	server := testserver.Start(t)
	everyone, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	var all [2]*guard.Guard
	var ahead [2]*prefetch.Store
	for i := range all {
		source, err := redis.Open(redis.Config{Client: rueidis.ClientOption{InitAddress: []string{server.Addr}}, Timeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(source.Close)
		if ahead[i], err = prefetch.New(prefetch.Config{Source: source}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ahead[i].Close)
		policy := headgate.Policy{Limit: headgate.Limit{Count: limit, Per: 300 * 24 * time.Hour}, Hold: time.Minute, Batch: limit / 10}
		all[i], err = guard.New(guard.Config{Store: ahead[i], Rules: []guard.Rule{{
			Rule: rule.Rule{Name: "api", Key: []rule.Part{everyone}}, Policies: []headgate.Policy{policy},
		}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	passes := func(g *guard.Guard) bool {
		var a guard.Answer
		if err := g.Decide(t.Context(), &headgate.Request{}, &a); err != nil || a.StoreError != nil {
			t.Fatal(err, a.StoreError)
		}
		return a.Verdict == headgate.Allow
	}
	drain := func() (admitted int) {
		for refused := 0; refused < 2; { // Both refuse, one after the other.
			refused = 0
			for _, g := range all {
				if passes(g) {
					admitted++
				} else {
					refused++
				}
			}
		}
		return admitted
	}
	if n := drain(); n > limit || n == 0 {
		t.Fatalf("%d units of %d were admitted", n, limit)
	}
	if ahead[0].Stats().Spent == 0 || ahead[1].Stats().Spent == 0 {
		t.Error("no unit came from a stash: the traffic shows nothing")
	}
	if _, err := all[0].Reset(t.Context(), guard.KeyName{Rule: "api"}); err != nil {
		t.Fatal(err)
	}
	reset := time.Now()
	admitted := 0
	if !passes(all[0]) {
		t.Error("the instance that has reset the key refuses it")
	}
	for admitted++; !passes(all[1]); {
		if time.Since(reset) > 30*time.Second {
			t.Fatal("the other instance still refuses the key")
		}
	}
	if admitted += 1 + drain(); admitted > limit+limit/10 || admitted < limit*8/10 {
		t.Errorf("%d units of %d were admitted after the reset", admitted, limit)
	}
}
