package documents

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// farConfiguration has one rule without prefetch, and one rule with prefetch.
const farConfiguration = `version: 1
store: redis://%s
store_timeout: %s
rules:
  - {name: asked, match: {path: /asked}, key: [all], limits: ["100000/10s"]}
  - {name: ahead, match: {path: /ahead}, key: [all], limits: ["100000/10s"], prefetch: {hold: 500ms}}
`

// far returns a guard with a round trip of 100 ms to its store.
func far(t *testing.T, timeout string) *guard.Guard {
	t.Helper()
	link := network.New(t, testserver.Start(t).Addr)
	link.Latency(oneWay, oneWay, 0)
	c, err := config.Parse("far.yaml", fmt.Appendf(nil, farConfiguration, link.Addr, timeout))
	if err != nil {
		t.Fatal(err)
	}
	store, err := open.Store(c, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	described, err := open.GuardConfig(c, store)
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(described)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

const oneWay = 50 * time.Millisecond

// request returns the reason and the duration of a decision.
func request(t *testing.T, g *guard.Guard, path string) (headgate.Reason, time.Duration) {
	t.Helper()
	began := time.Now()
	var a guard.Answer
	if err := g.Decide(t.Context(), &headgate.Request{Method: "GET", Path: path}, &a); err != nil {
		t.Error(err)
		return headgate.NoRule, 0
	}
	return a.Results[0].Decision.Reason, time.Since(began)
}

// TestFarStore checks a store with a round trip of 100 ms. With the default timeout it decides no
// request. With a longer timeout each request waits for the store. With prefetch few requests wait.
func TestFarStore(t *testing.T) {
	impatient := far(t, "20ms")
	for range 20 {
		if reason, _ := request(t, impatient, "/asked"); reason != headgate.StoreUnavailable {
			t.Fatalf("within 20ms: %v", reason)
		}
	}
	g := far(t, "5s")
	for range 5 {
		reason, elapsed := request(t, g, "/asked")
		if reason != headgate.WithinLimit || elapsed < 2*oneWay {
			t.Errorf("asked: %v after %v, want it within the limit after %v", reason, elapsed, 2*oneWay)
		}
	}
	asked, waited := ahead(t, g)
	t.Logf("%d of %d requests waited", waited, asked)
	if waited > asked/10 {
		t.Errorf("%d of %d requests waited for the store", waited, asked)
	}
}

// ahead makes 500 requests per second for three seconds, without waiting for answers. It counts
// the requests after the first second.
func ahead(t *testing.T, g *guard.Guard) (asked, waited int64) {
	t.Helper()
	var waits atomic.Int64
	var all sync.WaitGroup
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for i := range 1500 {
		<-tick.C
		all.Go(func() {
			reason, elapsed := request(t, g, "/ahead")
			if reason != headgate.WithinLimit {
				t.Errorf("ahead: %v", reason)
			}
			if i >= 500 && elapsed > oneWay {
				waits.Add(1)
			}
		})
	}
	all.Wait()
	return 1000, waits.Load()
}
