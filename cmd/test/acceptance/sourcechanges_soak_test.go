//go:build soak

package acceptance

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/testkit/etcdclient"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate/internal/testkit/etcd"
)

// manyCustomers follows the customers of etcd.
const manyCustomers = `version: 1
max_memory: 64MiB
source: {etcd: {endpoints: ["http://%s"], prefix: /objects}, cache: %s}
rules:
  - {name: api, match: {domain: shop}, key: [descriptor:customer], quota: api_calls}
default_plan: free
plans: {free: {quotas: {api_calls: [{limit: 1000000/30d}]}}}
server: {grpc: "127.0.0.1:0", http: "off"}
` + adminAnywhere

// TestSoakSourceChanges: with 100,000 customers under 10,000 different limits, 1,000 changes a minute do not delay
// decisions. Rounds with and without changes take turns in being first. A third kind of round writes as much to etcd under
// another prefix: it shows what etcd itself takes from the machine. The test also bounds the time from the start to the first
// decision.
func TestSoakSourceChanges(t *testing.T) {
	const customers, limits, rounds, round = 100_000, 10_000, 10, 6 * time.Second
	server := etcd.Start(t)
	client := etcdclient.New(t, server.Addr)
	entry := func(prefix string, n, more int) clientv3.Op {
		return clientv3.OpPut(fmt.Sprintf("%s/customers/customer-%06d", prefix, n),
			fmt.Sprintf(`{"limits": {"api_calls": [{"limit": "%d/30d"}]}}`, 1_000_000+n%limits+more))
	}
	for n := 0; n < customers; n += 100 {
		var all []clientv3.Op
		for k := n; k < n+100; k++ {
			all = append(all, entry("/objects", k, 0))
		}
		if _, err := client.Txn(t.Context()).Then(all...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	i := launchServer(t, file(t, fmt.Sprintf(manyCustomers, server.Addr, filepath.Join(t.TempDir(), "cache"))))
	ready := func() bool { got, _ := pageOf(t, "http://"+i.Health+"/readyz"); return got == 200 }
	eventually(t, "the customers", ready)
	loaded := time.Since(began).Round(time.Millisecond)
	load := serverLoad{connections: 4, workers: 4, pause: 2 * time.Millisecond, request: func(worker, n int) *ratelimitv3.RateLimitRequest {
		return &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: []*commonv3.RateLimitDescriptor{{
			Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "customer", Value: fmt.Sprintf("customer-%06d", (worker*25_000+7*n)%customers)}},
		}}}
	}}
	changes := 0
	write := func(prefix string) {
		tick := time.NewTicker(time.Minute / 1000)
		defer tick.Stop()
		for end := time.After(round); ; {
			select {
			case <-end:
				return
			case <-tick.C:
				changes++
				if _, err := client.Do(t.Context(), entry(prefix, rand.IntN(customers), 20_000+changes)); err != nil {
					t.Error(err)
				}
			}
		}
	}
	during := map[string]func(){
		"quiet": func() { <-time.After(round) }, "elsewhere": func() { write("/other") }, "changes": func() { write("/objects") },
	}
	order := []string{"quiet", "changes", "elsewhere"}
	var ratios, elsewhere []float64
	for n := range rounds {
		durations := map[string]time.Duration{}
		if n%2 == 1 {
			slices.Reverse(order)
		} else if n > 0 {
			order = append(order[1:], order[0])
		}
		for _, kind := range order {
			all := load.run(t, i.GRPC, during[kind])
			succeed(t, all)
			durations[kind] = slowest(all, 99)
		}
		t.Logf("p99 %v without changes, %v with changes, %v with changes under another prefix", durations["quiet"], durations["changes"], durations["elsewhere"])
		ratios = append(ratios, float64(durations["changes"])/float64(durations["quiet"]))
		elsewhere = append(elsewhere, float64(durations["elsewhere"])/float64(durations["quiet"]))
	}
	median := middle(ratios)
	t.Logf("100,000 customers are in force %v after the start; the p99 with changes is %.2f times that without (%.2f to %.2f); %.2f with "+
		"changes under another prefix", loaded, median, ratios[0], ratios[rounds-1], middle(elsewhere))
	if loaded > 5*time.Second {
		t.Errorf("100,000 customers took %v, want 5 s at most", loaded)
	}
	if median > 1.2 {
		t.Errorf("the p99 with changes is %.2f times that without, want 1.2 at most", median)
	}
}

// middle sorts numbers, and returns their median.
func middle(all []float64) float64 {
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}
