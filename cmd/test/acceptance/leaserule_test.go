package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/headgate/headgate"
	client "github.com/headgate/headgate/client/lease"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/lease/bucket"
	"github.com/headgate/headgate/rule"
)

const (
	leaseRuleLeaf = `version: 1
server: {grpc: %q, http: off}
lease: {servers: [%q], token_file: %q, length: 3100ms, refresh: 100ms}
store_timeout: 1s
rules: [{name: db, match: {domain: shop}, key: ["descriptor:table"], lease: "db/{1}"}]
`
	leaseRuleProxy = `version: 1
proxy: {listen: "127.0.0.1:0", upstream: %q}
lease: {servers: [%q], token_file: %q}
store_timeout: 1s
rules: [{name: db, key: ["header:X-Table"], lease: "db/{1}"}]
`
)

// leaseSpender is one way to the resource. spend makes a request, and reports whether it was admitted.
type leaseSpender struct {
	spend    func(ctx context.Context) bool
	admitted atomic.Int64
}

// spendAll has all spenders make requests for some time. It gives how many were admitted, and how long it took.
func spendAll(t *testing.T, all []*leaseSpender, d time.Duration) (sum int64, elapsed time.Duration) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var ended sync.WaitGroup
	for _, s := range all {
		s.admitted.Store(0)
		ended.Go(func() {
			every := time.NewTicker(2 * time.Millisecond)
			defer every.Stop()
			for ctx.Err() == nil {
				if s.spend(t.Context()) {
					s.admitted.Add(1)
				}
				<-every.C
			}
		})
	}
	ended.Wait()
	elapsed = time.Since(began)
	for _, s := range all {
		sum += s.admitted.Load()
	}
	return sum, elapsed
}

// leaseGuard makes the guard of a Go program whose rule spends leases of a server.
func leaseGuard(t *testing.T, at string) *guard.Guard {
	t.Helper()
	leases, err := client.New(client.Config{Servers: []string{at}, Token: "web"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = leases.Close() })
	buckets, err := bucket.New(bucket.Config{Source: leases.Source()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(buckets.Close)
	all, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Leases: buckets, LeaseTimeout: time.Second, Rules: []guard.Rule{{
		Rule: rule.Rule{Name: "db", Key: []rule.Part{all}}, Lease: guard.Lease{Resource: "db/orders"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestLeaseRule has a proxy, a Go program, and RLS behind a leaf. Each asks for up to 500/s of one resource with 500/s: together they stay within
// the capacity, also while the leaf is stopped and started.
func TestLeaseRule(t *testing.T) {
	t.Parallel()
	tree := newLeaseTree(t)
	leaf := file(t, fmt.Sprintf(leaseRuleLeaf, tree.leafAt, tree.rootAt, file(t, "leaf"))+adminAnywhere)
	launchServer(t, tree.root)
	below := launchServer(t, leaf)
	proxy := launch(t, file(t, fmt.Sprintf(leaseRuleProxy, upstreamOfQuotas(t), tree.rootAt, file(t, "web"))+adminAnywhere))
	g, envoy := leaseGuard(t, tree.rootAt), rateLimitClient(t, tree.leafAt)
	request, err := http.NewRequest(http.MethodGet, "http://"+proxy.Proxy+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Table", "orders")
	all := []*leaseSpender{
		{spend: func(ctx context.Context) bool {
			got, err := http.DefaultClient.Do(request.Clone(ctx))
			if err != nil {
				return false
			}
			_ = got.Body.Close()
			return got.StatusCode == http.StatusOK
		}},
		{spend: func(ctx context.Context) bool {
			var a guard.Answer
			return g.Decide(ctx, &headgate.Request{Path: "/"}, &a) == nil && a.Verdict == headgate.Allow
		}},
		{spend: func(ctx context.Context) bool {
			got, err := envoy.ShouldRateLimit(ctx, &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: []*commonv3.RateLimitDescriptor{
				{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "table", Value: "orders"}}},
			}})
			return err == nil && got.GetOverallCode() == ratelimitv3.RateLimitResponse_OK
		}},
	}
	within := func(what string, d time.Duration) (sum int64) {
		sum, elapsed := spendAll(t, all, d)
		shares := []int64{all[0].admitted.Load(), all[1].admitted.Load(), all[2].admitted.Load()}
		t.Logf("%s: %v of the proxy, the program and RLS, %.0f/s", what, shares, float64(sum)/elapsed.Seconds())
		const holders = 3
		if most := int64(leaseCapacity/1000*(elapsed.Seconds()+0.1)) + holders; sum > most {
			t.Errorf("%s: %d units in %v, the bound is %d", what, sum, elapsed, most)
		}
		return sum
	}
	// The root gives nothing until the leases of an earlier process have ended.
	eventually(t, "units for all three", func() bool {
		within("at the start", 500*time.Millisecond)
		return all[0].admitted.Load() > 20 && all[1].admitted.Load() > 20 && all[2].admitted.Load() > 20
	})
	within("together", 1500*time.Millisecond)
	if err := below.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	within("while the leaf stops", time.Second)
	<-below.ended
	if within("without the leaf", 500*time.Millisecond); all[2].admitted.Load() > 0 {
		t.Error("a stopped leaf answers")
	}
	launchServer(t, leaf)
	eventually(t, "units for RLS again", func() bool {
		within("with the leaf again", 500*time.Millisecond)
		return all[2].admitted.Load() > 20
	})
	if _, text := pageOf(t, "http://"+proxy.Admin+"/metrics"); !strings.Contains(text, "headgate_rule_leases 1\n") {
		t.Errorf("the metrics of the proxy have no headgate_rule_leases 1:\n%s", text)
	}
}
