package guard_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	buckets "github.com/headgate/headgate/internal/lease/bucket"
	"github.com/headgate/headgate/store/storetest"
)

// leaseSource gives a lease of the rate at once, or none without a rate. It is a buckets.Source.
type leaseSource struct {
	rate int64

	mu     sync.Mutex
	demand map[string]int64
	open   map[string]bool
}

type fakeLease struct {
	source   *leaseSource
	resource string
}

func (s *leaseSource) Lease(resource string, _ int64, changed func(buckets.Rate)) (buckets.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[resource] = true
	if s.rate > 0 {
		changed(buckets.Rate{Amount: s.rate, Left: time.Hour})
	}
	return &fakeLease{s, resource}, nil
}

func (l *fakeLease) Demand(units int64) {
	l.source.mu.Lock()
	defer l.source.mu.Unlock()
	l.source.demand[l.resource] += units
}

func (*fakeLease) Waiting(int64) {}

func (l *fakeLease) Close() {
	l.source.mu.Lock()
	defer l.source.mu.Unlock()
	delete(l.source.open, l.resource)
}

// leased makes a table of leases of a rate, in thousandths of a unit a second, at a fixed time.
func leased(t *testing.T, rate int64, clock *storetest.Clock) (*buckets.Table, *leaseSource) {
	t.Helper()
	source := &leaseSource{rate: rate, demand: map[string]int64{}, open: map[string]bool{}}
	table, err := buckets.New(buckets.Config{Source: source, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	return table, source
}

// leaseOf is a rule for all paths that spends a lease by client, with a burst of 5.
func leaseOf(t *testing.T, name string) guard.Rule {
	t.Helper()
	r := byClient(t, name, "")
	r.Lease = guard.Lease{Resource: "db/{1}", Burst: 5}
	return r
}

// passes counts the requests that pass.
func passes(t *testing.T, g *guard.Guard, client string, n int) (passed int) {
	t.Helper()
	for range n {
		if decide(t, g, request("/p", client)).Verdict == headgate.Allow {
			passed++
		}
	}
	return passed
}

// TestLeaseRule is the story of a rule with a lease: each client has a bucket, and refusals say when to come back.
func TestLeaseRule(t *testing.T) {
	clock := storetest.NewClock()
	table, source := leased(t, 2000, clock)
	g, _ := newGuard(t, guard.Config{Leases: table, Rules: []guard.Rule{leaseOf(t, "orders")}})
	if a, b := passes(t, g, "a", 8), passes(t, g, "b/c", 2); a != 5 || b != 2 {
		t.Errorf("%d and %d pass, want the burst of 5, and 2 of another client", a, b)
	}
	if d, e := source.demand["db/a"], source.demand["db/b%2Fc"]; d != 10 || e != 2 {
		t.Errorf("the demands are %d and %d, want 1.25 times 8 and 2 requests", d, e)
	}
	c := decide(t, g, request("/p", "a")).Closest()
	if d := c.Decision; d.Verdict != headgate.Deny || d.Reason != headgate.OverLimit || d.Limit != 5 || d.Remaining != 0 ||
		d.RetryAfter != 500*time.Millisecond || d.ResetAfter != 2500*time.Millisecond || c.Policy != "orders" || c.Fallback ||
		c.Limit != (headgate.Limit{Count: 2, Per: time.Second, Burst: 5}) || c.Algorithm() != headgate.TokenBucket {
		t.Errorf("%+v of %+v", d, c.Limit)
	}
	clock.Advance(time.Second)
	if n := passes(t, g, "a", 5); n != 2 {
		t.Errorf("%d pass after a second at 2/s", n)
	}
	costly := request("/p", "b/c")
	costly.Cost = 9
	clock.Advance(time.Minute)
	if a := decide(t, g, costly); a.Verdict != headgate.Allow {
		t.Errorf("a request of 9 to a full bucket of 5: %+v", a.Closest().Decision)
	}
	if d := decide(t, g, costly).Closest().Decision; d.RetryAfter != 4500*time.Millisecond {
		t.Errorf("%+v after it, want 4.5 s until the bucket is full", d)
	}
	refund := request("/p", "a")
	refund.Kind, refund.Cost = headgate.Refund, 2
	clock.Advance(-time.Minute)
	clock.Advance(time.Minute)
	if a := decide(t, g, refund); a.Verdict != headgate.Allow || a.Closest().Decision.Remaining != 5 {
		t.Errorf("%+v after a refund", a.Closest().Decision)
	}
	req, answer := request("/p", "a"), new(guard.Answer)
	if n := testing.AllocsPerRun(200, func() { _ = g.Decide(t.Context(), req, answer) }); n != 0 {
		t.Errorf("a decision makes %v allocations", n)
	}
}

// TestLeaseWithOtherRules: all rules of a request pass, or none takes a unit.
func TestLeaseWithOtherRules(t *testing.T) {
	for _, c := range []struct {
		name                string
		limit               int64
		shadow, independent bool
		pass, ofLease, left int64 // of 8 requests: those that pass, the units that the lease and the limit have left
	}{
		{"the limit refuses", 3, false, false, 3, 2, 0},
		{"the lease refuses", 7, false, false, 5, 0, 2},
		{"a lease in shadow refuses nothing", 7, true, false, 7, 0, 0},
		{"independent rules count alone", 3, false, true, 3, 0, 0},
		{"an independent lease refuses alone", 7, false, true, 5, 0, 0},
	} {
		for _, all := range []bool{false, true} {
			clock := storetest.NewClock()
			table, _ := leased(t, 1000, clock)
			lease := leaseOf(t, "lease")
			if c.shadow {
				lease.Mode = guard.Shadow
			}
			g, _ := newGuard(t, guard.Config{
				Leases: table, Independent: c.independent, Rules: []guard.Rule{byClient(t, "limit", "/p", perMinute(c.limit)), lease},
			})
			passed := 0
			if requests, answers := make([]headgate.Request, 8), make([]guard.Answer, 8); all {
				for i := range requests {
					requests[i] = *request("/p", "a")
				}
				g.DecideAll(t.Context(), requests, answers)
				for i := range answers {
					if answers[i].Error == nil && answers[i].Verdict == headgate.Allow {
						passed++
					}
				}
			} else {
				passed = passes(t, g, "a", 8)
			}
			peek := request("/p", "a")
			peek.Kind = headgate.Peek
			left := map[string]int64{}
			for _, r := range decide(t, g, peek).Results {
				left[r.Rule.Name] = r.Decision.Remaining
			}
			if int64(passed) != c.pass || left["lease"] != c.ofLease || left["limit"] != c.left {
				t.Errorf("%s, all at once %v: %d pass, left %v, want %+v", c.name, all, passed, left, c)
			}
		}
	}
}

// TestLeaseFallback: without a lease, the fallback answers after the wait.
func TestLeaseFallback(t *testing.T) {
	for fallback, want := range map[guard.Fallback]headgate.Verdict{
		guard.FallbackDeny: headgate.Deny, guard.FallbackAllow: headgate.Allow, guard.FallbackError: headgate.Deny,
	} {
		table, _ := leased(t, 0, storetest.NewClock())
		lease := leaseOf(t, "orders")
		lease.Fallback = fallback
		g, _ := newGuard(t, guard.Config{Leases: table, LeaseTimeout: time.Millisecond, Rules: []guard.Rule{lease}})
		a := decide(t, g, request("/p", "a"))
		c := a.Closest()
		if a.Verdict != want || c.Decision.Reason != headgate.StoreUnavailable || !c.Fallback || !errors.Is(a.StoreError, buckets.ErrNoLease) {
			t.Errorf("%v: %+v, %v", fallback, c, a.StoreError)
		}
	}
	table, _ := leased(t, 0, storetest.NewClock())
	g, _ := newGuard(t, guard.Config{Leases: table, LeaseTimeout: time.Hour, Rules: []guard.Rule{leaseOf(t, "orders")}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var a guard.Answer
	if err := g.Decide(ctx, request("/p", "a"), &a); err != nil || !errors.Is(a.StoreError, guard.ErrCallerGone) {
		t.Errorf("%v, %v for a caller that has left", err, a.StoreError)
	}
}

// TestLeaseOfUnmadeRequest: a request that is not made returns its units.
func TestLeaseOfUnmadeRequest(t *testing.T) {
	table, _ := leased(t, 1000, storetest.NewClock())
	g, _ := newGuard(t, guard.Config{Leases: table, Rules: []guard.Rule{leaseOf(t, "orders")}})
	for range 20 {
		a := decide(t, g, request("/p", "a"))
		if a.Verdict != headgate.Allow {
			t.Fatalf("%+v, although every request was canceled", a.Closest().Decision)
		}
		if err := g.Cancel(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	degrade := leaseOf(t, "orders")
	degrade.Exceed = guard.Exceed{Action: guard.Degrade, Header: "X-Level", Value: "low"}
	if err := g.Reload(guard.Config{Leases: table, Store: g.Store(), Rules: []guard.Rule{degrade}}); err != nil {
		t.Fatal(err)
	}
	degraded := 0
	for range 8 {
		if a := decide(t, g, request("/p", "a")); a.Verdict == headgate.Allow && a.Closest().Decision.Reason == headgate.Degraded {
			degraded++
		}
	}
	if degraded != 3 {
		t.Errorf("%d of 8 requests degraded, want those beyond the burst of 5", degraded)
	}
}

// TestLeaseReload: a reload keeps the leases that rules still have, and releases the others.
func TestLeaseReload(t *testing.T) {
	table, source := leased(t, 1000, storetest.NewClock())
	same, other := leaseOf(t, "same"), leaseOf(t, "other")
	other.Lease.Resource = "mail/{1}"
	g, _ := newGuard(t, guard.Config{Leases: table, Rules: []guard.Rule{same, other}})
	passes(t, g, "a", 5)
	if !source.open["db/a"] || !source.open["mail/a"] {
		t.Fatalf("the leases are %v", source.open)
	}
	same.Name, other.Lease.Resource = "renamed", "post/{1}"
	if err := g.Reload(guard.Config{Leases: table, Store: g.Store(), Rules: []guard.Rule{same, other}}); err != nil {
		t.Fatal(err)
	}
	if !source.open["db/a"] || source.open["mail/a"] {
		t.Errorf("the leases are %v after the reload", source.open)
	}
	if n := passes(t, g, "a", 5); n != 0 {
		t.Errorf("%d requests pass after the reload, although the bucket is empty", n)
	}
}

// TestLeaseFaults: New refuses what a lease cannot have.
func TestLeaseFaults(t *testing.T) {
	table, _ := leased(t, 1000, storetest.NewClock())
	for want, change := range map[string]func(*guard.Rule, *guard.Config){
		"Config.Leases is nil": func(_ *guard.Rule, c *guard.Config) { c.Leases = nil },
		"lease and limits":     func(r *guard.Rule, _ *guard.Config) { r.Policies = []headgate.Policy{{Limit: perMinute(5)}} },
		"lease and in_flight":  func(r *guard.Rule, _ *guard.Config) { r.InFlight = 5 },
		"lease and a ban":      func(r *guard.Rule, _ *guard.Config) { r.Ban.For = time.Minute },
		"lease and settle":     func(r *guard.Rule, _ *guard.Config) { r.Settle = "X-Cost" },
		"the action delay":     func(r *guard.Rule, _ *guard.Config) { r.Exceed.Action = guard.Delay },
		"the fallback local":   func(r *guard.Rule, _ *guard.Config) { r.Fallback = guard.FallbackLocal },
		"no part {2}":          func(r *guard.Rule, _ *guard.Config) { r.Lease.Resource = "db/{2}" },
		"out of range":         func(r *guard.Rule, _ *guard.Config) { r.Lease.Burst = -1 },
	} {
		r, c := leaseOf(t, "orders"), guard.Config{Leases: table}
		change(&r, &c)
		c.Rules = []guard.Rule{r}
		if _, err := guard.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
