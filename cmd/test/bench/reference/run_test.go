package reference

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// scenario is a setting of both servers.
type scenario struct {
	name        string
	environment []string // of the reference
	settings    string   // server.rate_limit_service of Headgate
	quota, stop bool
}

func scenarios() []scenario {
	return []scenario{
		{name: "usual", settings: "{}"},
		{
			name: "stop increment", environment: []string{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true"},
			settings: "{stop_increment: true}", stop: true,
		},
		{
			name: "quota mode", environment: []string{"QUOTA_MODE=true"},
			settings: "{quota_mode: true}", quota: true,
		},
	}
}

// peers are the servers of one scenario. All have the same limits: headgate has them converted, and
// replacement has the environment and the files of the reference.
type peers struct {
	scenario

	reference, replacement server
	headgate               ratelimitv3.RateLimitServiceClient
}

func startPeers(t *testing.T, p programs, s scenario, d domains) *peers {
	t.Helper()
	root := t.TempDir()
	folder := filepath.Join(root, "config")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range d.names {
		save(t, filepath.Join(folder, name+".yaml"), file(name, d.trees[name]))
	}
	of := &peers{scenario: s}
	of.reference = startReference(t, p.reference, root, s.environment...)
	of.replacement = startReplacement(t, p.headgate, root, s.environment...)
	of.headgate = startHeadgate(t, p.headgate, folder, s.settings)
	return of
}

// result is the outcome of one scenario.
type result struct {
	requests, counters int
	differences        []string
	excused            map[string]int
}

// maxShown bounds the differences that a run keeps.
const maxShown = 40

func (r *result) add(text string) {
	if len(r.differences) < maxShown {
		r.differences = append(r.differences, text)
	}
}

// workers is the number of goroutines that send requests. Each has domains of its own, so that the
// order of requests to a domain is the same for all servers.
const workers = 4

// run sends n random requests to all peers.
func (p *peers) run(t *testing.T, n int, seed uint64, d domains) *result {
	t.Helper()
	sum := &result{requests: n, excused: map[string]int{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	for w := range workers {
		own := domains{trees: d.trees}
		for i := w; i < len(d.names); i += workers {
			own.names = append(own.names, d.names[i])
		}
		q := &requests{random: rand.New(rand.NewPCG(seed, uint64(w+1))), domains: own, twice: !p.stop}
		all.Go(func() {
			one := p.work(t.Context(), q, n/workers)
			mu.Lock()
			defer mu.Unlock()
			for name, times := range one.excused {
				sum.excused[name] += times
			}
			for _, text := range one.differences {
				sum.add(text)
			}
		})
	}
	all.Wait()
	without := ""
	if p.stop {
		without = " near_limit" // Listed as stopNearLimit.
	}
	differing, compared := compareCounters(t, p.replacement.metrics, p.reference.metrics, without)
	sum.counters = compared
	for _, text := range differing {
		sum.add(text)
	}
	return sum
}

// work sends n requests, one after another.
func (p *peers) work(ctx context.Context, q *requests, n int) *result {
	r := &result{excused: map[string]int{}}
	for range n {
		if text := p.decide(ctx, q.next(), r.excused); text != "" {
			r.add(text)
		}
	}
	return r
}

// decide compares the answers to one request.
func (p *peers) decide(ctx context.Context, req *ratelimitv3.RateLimitRequest, excused map[string]int) string {
	began := time.Now()
	want, failed := p.reference.client.ShouldRateLimit(ctx, req)
	ours, err := p.headgate.ShouldRateLimit(ctx, req)
	replacement, errReplacement := p.replacement.client.ShouldRateLimit(ctx, req)
	if err := errors.Join(failed, err, errReplacement); err != nil {
		return fmt.Sprintf("%v\n%s", err, req)
	}
	c := comparison{quota: p.quota, elapsed: time.Since(began), excused: excused}
	text := c.difference(want, ours)
	c.excused = map[string]int{} // Each answer counts once.
	if other := c.difference(want, replacement); text == "" && other != "" {
		text = "with the environment of the reference only:\n" + other
	}
	if text == "" {
		return ""
	}
	return text + req.String()
}

// growAll makes random trees, with about 800 requests for each.
func growAll(seed uint64, requests int) domains {
	r := rand.New(rand.NewPCG(seed, 0))
	d := domains{trees: map[string][]*node{}}
	for i := range max(2*workers, requests/800) {
		name := fmt.Sprintf("domain%d", i)
		d.names, d.trees[name] = append(d.names, name), grow(r, 0)
	}
	return d
}

// compare runs all scenarios with a total of n requests. When an hour ends meanwhile, it runs them
// again: the servers may then have decided a request in different windows.
func compare(t *testing.T, n int) {
	t.Helper()
	p := buildAll(t)
	for {
		began := time.Now()
		results := compareOnce(t, p, n, rand.Uint64())
		if began.Truncate(time.Hour).Equal(time.Now().Truncate(time.Hour)) {
			report(t, results, time.Since(began))
			return
		}
		t.Log("an hour ended during the run: running again")
	}
}

func compareOnce(t *testing.T, p programs, n int, seed uint64) (results []*result) {
	t.Helper()
	t.Logf("seed %d", seed)
	all := scenarios()
	for i, s := range all {
		share := n / 5
		if i == 0 {
			share = n - share*(len(all)-1)
		}
		d := growAll(seed+uint64(i), share)
		results = append(results, startPeers(t, p, s, d).run(t, share, seed, d))
	}
	return results
}

// report prints the outcome, and fails the test for each difference.
func report(t *testing.T, results []*result, took time.Duration) {
	t.Helper()
	sum := 0
	for i, r := range results {
		sum += len(r.differences)
		t.Logf("%s: %d requests, %d counters, %d differences; excused %v",
			scenarios()[i].name, r.requests, r.counters, len(r.differences), r.excused)
		for _, text := range r.differences {
			t.Error(text)
		}
	}
	t.Logf("%d differences in %.0f s", sum, took.Seconds())
}
