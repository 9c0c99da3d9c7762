package fields_test

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// sender is a request's headgate.Values with only a client name.
type sender string

// Lookup implements headgate.Values.
func (s sender) Lookup(string) (string, bool) { return string(s), s != "" }

// sharing returns a guard that shares a capacity. Client a has all of it. The clock stands
// at the start of a cycle.
func sharing(t *testing.T, capacity int64, cycle time.Duration) *guard.Guard {
	t.Helper()
	f, err := guard.NewFairShare(capacity, "header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	f.Weights, f.Cycle = map[string]int64{"a": 1}, cycle
	g, err := guard.New(guard.Config{FairShare: f, Clock: func() headgate.Instant { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func decide(t *testing.T, g *guard.Guard, client string) *guard.Answer {
	t.Helper()
	a := new(guard.Answer)
	if err := g.Decide(t.Context(), &headgate.Request{Method: "GET", Path: "/", Header: sender(client)}, a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAnnounceShares checks that the fields show a share as a limit per cycle.
func TestAnnounceShares(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		name   string
		cycle  time.Duration
		before int
		client string
		want   http.Header
	}{
		{"allowed", second, 0, "a", http.Header{"Ratelimit-Policy": {`"fair_share";q=2;w=1`}, "Ratelimit": {`"fair_share";r=1;t=1`}}},
		{"a cycle of minutes", 2 * time.Minute, 1, "a", http.Header{"Ratelimit-Policy": {`"fair_share";q=2;w=120`}, "Ratelimit": {`"fair_share";r=0;t=120`}}},
		{"a cycle of 1.5 s", 1500 * time.Millisecond, 0, "a", http.Header{"Ratelimit-Policy": {`"fair_share";q=2;w=2`}, "Ratelimit": {`"fair_share";r=1;t=2`}}},
		{"a cycle of 50 ms", 50 * time.Millisecond, 0, "a", http.Header{"Ratelimit-Policy": {`"fair_share";q=2;w=1`}, "Ratelimit": {`"fair_share";r=1;t=1`}}},
		{"anonymous: no t", second, 0, "", http.Header{"Ratelimit-Policy": {`"fair_share";q=0;w=1`}, "Ratelimit": {`"fair_share";r=0`}}},
	} {
		g := sharing(t, 2, c.cycle)
		for range c.before {
			decide(t, g, c.client)
		}
		h := http.Header{}
		fields.Draft.Announce(h, decide(t, g, c.client))
		if !reflect.DeepEqual(h, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, h, c.want)
		}
	}
}

// TestDetailOfFairShare checks the sentences about shares. A client over its share learns
// when to retry, and an anonymous client learns how to name itself.
func TestDetailOfFairShare(t *testing.T) {
	g := sharing(t, 1, 10*time.Second)
	decide(t, g, "a")
	over := decide(t, g, "a").Closest()
	over.Decision.RetryAfter = 11*time.Second + 1 // RetryAfter includes jitter.
	costly := new(guard.Answer)
	if err := g.Decide(t.Context(), &headgate.Request{Method: "GET", Path: "/", Header: sender("a"), Cost: 2}, costly); err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]*guard.Result{
		"The client has used its share of the capacity under the policy fair_share, 1/10s: retry in 12 s.":             over,
		"The request names no client, and the policy fair_share shares among clients: name one by header:X-Client-Id.": decide(t, g, "").Closest(),
		"The request names no client, and the policy fair_share shares among clients: name one.":                       {Policy: "fair_share", Decision: headgate.Decision{Reason: headgate.AnonymousClient}},
		"The request costs more than the policy fair_share ever admits: send a request with a lower cost.":             costly.Closest(),
		"The limit of the policy fair_share is 0: nothing is admitted.":                                                decide(t, sharing(t, 0, time.Second), "a").Closest(),
		"The limit of the policy product is 0: nothing is admitted.":                                                   {Policy: "product", Decision: headgate.Decision{Reason: headgate.Never}},
		"The request is within the limit of the policy fair_share.":                                                    decide(t, sharing(t, 1, time.Second), "a").Closest(),
	} {
		if got := fields.Detail(r); got != want {
			t.Errorf("sentence %q, want %q", got, want)
		}
	}
}

// TestAnnounceSharesAllocations checks that the shares of many clients need no more
// allocations than one limit.
func TestAnnounceSharesAllocations(t *testing.T) {
	var n fields.Announcer
	h := http.Header{}
	for _, capacity := range []int64{10, 1_000_000} {
		a := decide(t, sharing(t, capacity, time.Hour), "a")
		for _, style := range []fields.Style{fields.Draft, fields.XRateLimit} {
			n.Announce(style, fields.Map(h), a)
			if got := testing.AllocsPerRun(100, func() {
				clear(h)
				a.Results[0].Limit.Count++ // The next request has another client's limit.
				n.Announce(style, fields.Map(h), a)
			}); got != 1 {
				t.Errorf("a share of %d in style %v needs %v allocations, want 1", capacity, style, got)
			}
		}
	}
}
