//go:build soak

package acceptance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/internal/testkit/etcd"
)

// manyCustomers follows the customers of etcd.
const manyCustomers = `version: 1
max_memory: 64MiB
source: {etcd: {endpoints: ["http://%s"], prefix: /objects}}
rules:
  - {name: api, match: {domain: shop}, key: [descriptor:customer], quota: api_calls}
default_plan: free
plans: {free: {quotas: {api_calls: [{limit: 1000000/30d}]}}}
server: {grpc: "127.0.0.1:0", http: "off"}
` + adminAnywhere

// TestSoakSourceChanges: with 100,000 customers under 10,000 different limits, 1,000 changes a minute do not delay
// decisions. Rounds with and without changes alternate. It also bounds the time from the start to the first decision.
func TestSoakSourceChanges(t *testing.T) {
	const customers, limits, rounds, round = 100_000, 10_000, 10, 6 * time.Second
	server := etcd.Start(t)
	client := server.Client()
	entry := func(n, more int) clientv3.Op {
		return clientv3.OpPut(fmt.Sprintf("/objects/customers/customer-%06d", n),
			fmt.Sprintf(`{"limits": {"api_calls": [{"limit": "%d/30d"}]}}`, 1_000_000+n%limits+more))
	}
	for n := 0; n < customers; n += 100 {
		var all []clientv3.Op
		for k := n; k < n+100; k++ {
			all = append(all, entry(k, 0))
		}
		if _, err := client.Txn(t.Context()).Then(all...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	i := launchServer(t, file(t, fmt.Sprintf(manyCustomers, server.Addr)))
	ready := func() bool { got, _ := pageOf(t, "http://"+i.Health+"/readyz"); return got == 200 }
	eventually(t, "the customers", ready)
	loaded := time.Since(began).Round(time.Millisecond)
	load := serverLoad{connections: 4, workers: 4, pause: 2 * time.Millisecond, request: func(worker, n int) *ratelimitv3.RateLimitRequest {
		return &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: []*commonv3.RateLimitDescriptor{{
			Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "customer", Value: fmt.Sprintf("customer-%06d", (worker*25_000+7*n)%customers)}},
		}}}
	}}
	p99 := func(during func()) time.Duration {
		all := load.run(t, i.GRPC, during)
		succeed(t, all)
		return slowest(all, 99)
	}
	changes := 0
	change := func() {
		tick := time.NewTicker(time.Minute / 1000)
		defer tick.Stop()
		for end := time.After(round); ; {
			select {
			case <-end:
				return
			case <-tick.C:
				changes++
				if _, err := client.Do(t.Context(), entry(rand.IntN(customers), 20_000+changes)); err != nil {
					t.Error(err)
				}
			}
		}
	}
	var ratios []float64
	for range rounds {
		quiet, busy := p99(func() { <-time.After(round) }), p99(change)
		t.Logf("p99 %v without changes, %v with", quiet, busy)
		ratios = append(ratios, float64(busy)/float64(quiet))
	}
	slices.Sort(ratios)
	median := (ratios[rounds/2-1] + ratios[rounds/2]) / 2
	t.Logf("100,000 customers are in force %v after the start; with %d changes, the p99 is %.2f times that without (%.2f to %.2f)", loaded,
		changes, median, ratios[0], ratios[rounds-1])
	if loaded > 5*time.Second {
		t.Errorf("100,000 customers took %v, want 5 s at most", loaded)
	}
	if median > 1.2 {
		t.Errorf("the p99 with changes is %.2f times that without, want 1.2 at most", median)
	}
}
