// Package prefetchtest has the tests of package prefetch that need a client of Redis.
package prefetchtest

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/internal/testkit/versions"
	"github.com/headgate/headgate/store/redis"
)

// TestTwoVersionsOnRedis: two instances have different versions of a limit on one key of a real server, in turns, with
// clocks that the test moves. In any interval they admit together at most the more generous version and a constant.
func TestTwoVersionsOnRedis(t *testing.T) {
	server := testserver.Start(t)
	for name, d := range versions.Deploys() {
		t.Run(name, func(t *testing.T) {
			var now atomic.Int64
			now.Store(int64(377 * time.Millisecond))
			ours := func() time.Duration { return time.Duration(now.Load()) }
			theirs := func() headgate.Instant {
				return headgate.Instant(1_704_110_400_000_000_000).Add(time.Duration(now.Load()))
			}
			var stores [2]*prefetch.Store
			var ids [2]headgate.PolicyID
			for i, p := range []headgate.Policy{d.Was, d.Is} {
				source, err := redis.Open(redis.Config{Client: rueidis.ClientOption{InitAddress: []string{server.Addr}}, Clock: theirs, Timeout: 10 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(source.Close)
				if stores[i], err = prefetch.New(prefetch.Config{Source: source, Clock: ours, MaxKeys: 7}); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(stores[i].Close)
				if ids[i], err = stores[i].Prepare(p); err != nil {
					t.Fatal(err)
				}
			}
			var spends []versions.Spend
			r := rand.New(rand.NewPCG(5, 8))
			for range 30 {
				which, gap := r.IntN(2), 1+r.Int64N(8)
				for range 1 + r.IntN(40) {
					now.Add(r.Int64N(gap*1000) * 1000)
					decisions := make([]headgate.Decision, 1)
					if err := stores[which].Apply(t.Context(), []headgate.Op{{Key: name, Policy: ids[which], Cost: 1}}, decisions); err != nil {
						t.Fatal(err)
					}
					if decisions[0].Verdict == headgate.Allow {
						spends = append(spends, versions.Spend{At: decisions[0].At, Truly: theirs(), Cost: 1})
					}
				}
			}
			if stores[0].Stats().Spent+stores[1].Stats().Spent == 0 {
				t.Error("no unit came from a stash: the traffic shows nothing")
			}
			d.Judge(t, spends)
		})
	}
}
