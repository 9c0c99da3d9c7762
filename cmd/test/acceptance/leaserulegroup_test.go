package acceptance

import (
	"context"
	"fmt"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/headgate/headgate/internal/testkit/etcd"
)

// leaseRuleMember is a server of a group whose rules spend leases of its master.
const leaseRuleMember = `version: 1
server: {grpc: %q, http: off}
store_timeout: 1s
rules: [{name: db, match: {domain: shop}, key: ["descriptor:table"], lease: "db/{1}"}]
lease:
  election: {etcd: [%q], group: eu, ttl: 1s, servers: [%q, %q]}
  length: 5s
  refresh: 200ms
  resources: [{match: "db/*", capacity: 500/s, safe: 0/s}]
`

// TestLeaseRuleInAGroup has two servers of a group, which both answer RLS by a rule with a lease. Together they stay within the
// capacity. The master is killed, and the other server becomes the client of itself.
func TestLeaseRuleInAGroup(t *testing.T) {
	t.Parallel()
	g := &leaseGroup{t: t, etcd: etcd.Start(t), at: []string{freeAddress(t), freeAddress(t)}, servers: map[string]*instance{}}
	spenders := map[string]*leaseSpender{}
	for _, at := range g.at {
		g.servers[at] = launchServer(t, file(t, fmt.Sprintf(leaseRuleMember, at, g.etcd.Addr, g.at[0], g.at[1])+adminAnywhere))
		envoy := rateLimitClient(t, at)
		spenders[at] = &leaseSpender{spend: func(ctx context.Context) bool {
			got, err := envoy.ShouldRateLimit(ctx, &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: []*commonv3.RateLimitDescriptor{
				{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "table", Value: "orders"}}},
			}})
			return err == nil && got.GetOverallCode() == ratelimitv3.RateLimitResponse_OK
		}}
	}
	both := []*leaseSpender{spenders[g.at[0]], spenders[g.at[1]]}
	within := func(what string, d time.Duration) {
		sum, elapsed := spendAll(t, both, d)
		t.Logf("%s: %d and %d of the servers, %.0f/s", what, both[0].admitted.Load(), both[1].admitted.Load(), float64(sum)/elapsed.Seconds())
		if most := int64(500*(elapsed.Seconds()+0.1)) + 2; sum > most {
			t.Errorf("%s: %d units in %v, the bound is %d", what, sum, elapsed, most)
		}
	}
	first, _ := g.master("")
	eventually(t, "units for both", func() bool {
		within("at the start", 500*time.Millisecond)
		return both[0].admitted.Load() > 20 && both[1].admitted.Load() > 20
	})
	within("together", time.Second)
	g.kill(first)
	if second, _ := g.master(""); second == first {
		t.Fatalf("the killed server %s is the master", first)
	}
	eventually(t, "units of the next master", func() bool {
		within("after the take-over", 500*time.Millisecond)
		return spenders[g.other(first)].admitted.Load() > 100
	})
}
