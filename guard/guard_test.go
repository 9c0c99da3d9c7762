package guard_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// headers are the headers of a request.
type headers map[string]string

// Lookup gives the value under a name.
func (h headers) Lookup(name string) (string, bool) {
	v, ok := h[name]
	return v, ok
}

func request(path, client string) *headgate.Request {
	return &headgate.Request{
		Method: "GET", Host: "shop.example", Path: path, IP: netip.MustParseAddr("192.0.2.7"),
		Header: headers{"X-Client-Id": client},
	}
}

// byClient is a rule for a path that counts by X-Client-Id.
func byClient(tb testing.TB, name, path string, limits ...headgate.Limit) guard.Rule {
	tb.Helper()
	part, err := rule.ParsePart("header:X-Client-Id")
	if err != nil {
		tb.Fatal(err)
	}
	r := guard.Rule{Rule: rule.Rule{Name: name, Match: rule.Match{Path: path}, Key: []rule.Part{part}}}
	for _, l := range limits {
		r.Policies = append(r.Policies, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: l})
	}
	return r
}

func newGuard(t *testing.T, c guard.Config) (*guard.Guard, *storetest.Clock) {
	t.Helper()
	clock := storetest.NewClock()
	if c.Store == nil {
		store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		c.Store = store
	}
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g, clock
}

func decide(t *testing.T, g *guard.Guard, req *headgate.Request) *guard.Answer {
	t.Helper()
	var a guard.Answer
	if err := g.Decide(t.Context(), req, &a); err != nil {
		t.Fatal(err)
	}
	return &a
}

func perMinute(n int64) headgate.Limit { return headgate.Limit{Count: n, Per: time.Minute} }

func TestNoRuleAllows(t *testing.T) {
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{byClient(t, "a", "/a", perMinute(1))}})
	if a := decide(t, g, request("/b", "x")); a.Verdict != headgate.Allow || a.Closest() != nil || len(a.Results) != 0 {
		t.Errorf("a request without a rule: %v, %d results", a.Verdict, len(a.Results))
	}
}

// TestSeveralWindows: a request must pass all limits of a rule. The answer has the limit that holds it
// back.
func TestSeveralWindows(t *testing.T) {
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{
		byClient(t, "product", "/p", headgate.Limit{Count: 2, Per: time.Second}, headgate.Limit{Count: 3, Per: time.Minute}),
	}})
	for i, want := range []struct {
		verdict headgate.Verdict
		policy  string
	}{
		{headgate.Allow, "product-1s"}, // half of 2, and two thirds of 3
		{headgate.Allow, "product-1s"},
		{headgate.Deny, "product-1s"},
	} {
		if a := decide(t, g, request("/p", "x")); a.Verdict != want.verdict || a.Closest().Policy != want.policy {
			t.Errorf("request %d: %v by %s, want %v by %s", i, a.Verdict, a.Closest().Policy, want.verdict, want.policy)
		}
	}
	clock.Advance(time.Second)
	decide(t, g, request("/p", "x"))
	if a := decide(t, g, request("/p", "x")); a.Verdict != headgate.Deny || a.Closest().Policy != "product-1m" {
		t.Errorf("the fourth of three a minute: %v by %s", a.Verdict, a.Closest().Policy)
	}
	if a := decide(t, g, request("/p", "y")); a.Verdict != headgate.Allow {
		t.Errorf("another client: %v", a.Verdict)
	}
}

// TestAllOrNothing: a refusal by one rule takes nothing from the others, unless the rules count
// independently.
func TestAllOrNothing(t *testing.T) {
	for _, c := range []struct {
		independent bool
		left        int64
	}{{false, 9}, {true, 8}} {
		t.Run(fmt.Sprintf("independent %v", c.independent), func(t *testing.T) {
			g, _ := newGuard(t, guard.Config{Independent: c.independent, Rules: []guard.Rule{
				byClient(t, "wide", "/*", perMinute(10)), byClient(t, "narrow", "/p", perMinute(1)),
			}})
			decide(t, g, request("/p", "x"))
			a := decide(t, g, request("/p", "x"))
			if a.Verdict != headgate.Deny || a.Closest().Policy != "narrow" {
				t.Fatalf("the second of one: %v by %s", a.Verdict, a.Closest().Policy)
			}
			if left := a.Results[0].Decision.Remaining; left != c.left {
				t.Errorf("%d remain of the wide rule, want %d", left, c.left)
			}
		})
	}
}

// TestShadow: a shadow rule decides and reports. It refuses nothing and returns nothing.
func TestShadow(t *testing.T) {
	shadow := byClient(t, "shadow", "/p", perMinute(1))
	shadow.Mode = guard.Shadow
	off := byClient(t, "off", "/p", perMinute(0))
	off.Mode = guard.Off
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{shadow, off, byClient(t, "real", "/p", perMinute(2))}})
	want := []struct{ real, shadow headgate.Verdict }{
		{headgate.Allow, headgate.Allow}, {headgate.Allow, headgate.Deny}, {headgate.Deny, headgate.Deny},
	}
	for i, w := range want {
		a := decide(t, g, request("/p", "x"))
		if len(a.Results) != 2 || a.Verdict != w.real || a.Results[1].Decision.Verdict != w.shadow {
			t.Errorf("request %d: %v, shadow %v, %d results", i, a.Verdict, a.Results[1].Decision.Verdict, len(a.Results))
		}
		if a.Results[1].Enforced() || a.Closest().Policy != "real" || a.Closest().Number != 2 {
			t.Errorf("request %d: the caller is told of %s", i, a.Closest().Policy)
		}
	}
}

// TestSharedKey: requests without the header count under one key, and the Result says so.
func TestSharedKey(t *testing.T) {
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{byClient(t, "a", "/a", perMinute(1))}})
	req := request("/a", "")
	req.Header = headers{}
	first, second := decide(t, g, req), decide(t, g, req)
	if !first.Results[0].Shared || first.Verdict != headgate.Allow || second.Verdict != headgate.Deny {
		t.Errorf("without the header: shared %v, %v, then %v", first.Results[0].Shared, first.Verdict, second.Verdict)
	}
	if decide(t, g, request("/a", "x")).Results[0].Shared {
		t.Error("a request with the header is counted as one without")
	}
}

// TestCost: the cost comes from the request, or else from the rule, or else is 1.
func TestCost(t *testing.T) {
	r := byClient(t, "a", "/a", perMinute(10))
	r.Cost = 3
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	if a := decide(t, g, request("/a", "x")); a.Results[0].Decision.Remaining != 7 {
		t.Errorf("a cost of 3 leaves %d of 10", a.Results[0].Decision.Remaining)
	}
	req := request("/a", "x")
	req.Cost = 5
	if a := decide(t, g, req); a.Results[0].Decision.Remaining != 2 {
		t.Errorf("and one of 5 leaves %d", a.Results[0].Decision.Remaining)
	}
	req.Cost = 11
	if a := decide(t, g, req); a.Closest().Decision.Reason != headgate.Never || a.RetryAfter() != 0 {
		t.Errorf("11 of 10: %v, retry %v", a.Closest().Decision.Reason, a.RetryAfter())
	}
	for _, bad := range []int64{-1, headgate.MaxUnits + 1} {
		req.Cost = bad
		if err := g.Decide(t.Context(), req, &guard.Answer{}); !errors.Is(err, headgate.ErrBadCost) {
			t.Errorf("cost %d: %v", bad, err)
		}
	}
}

// TestCancelReturns: Cancel returns the units of a request.
func TestCancelReturns(t *testing.T) {
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{byClient(t, "a", "/*", perMinute(5)), byClient(t, "b", "/a", perMinute(1))}})
	a := decide(t, g, request("/a", "x"))
	for range 2 { // A second Cancel returns nothing.
		if err := g.Cancel(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	a = decide(t, g, request("/a", "x"))
	if a.Verdict != headgate.Allow || a.Results[0].Decision.Remaining != 4 {
		t.Errorf("after the cancel: %v, %d of 5 remain", a.Verdict, a.Results[0].Decision.Remaining)
	}
}

// deaf is a store that always fails.
type deaf struct{ headgate.Store }

var errDeaf = errors.New("connection refused")

func (deaf) Prepare(headgate.Policy) (headgate.PolicyID, error) { return 1, nil }

func (deaf) Release(headgate.PolicyID) {}

func (deaf) Apply(ctx context.Context, _ []headgate.Op, _ []headgate.Decision) error {
	if _, bounded := ctx.Deadline(); bounded {
		<-ctx.Done()
		return ctx.Err()
	}
	return errDeaf
}

func (deaf) Return(context.Context, []headgate.Receipt) error { return errDeaf }

func (deaf) Forget(context.Context, []headgate.Op) error { return errDeaf }

// TestFallback: when the store fails, each rule uses its fallback.
func TestFallback(t *testing.T) {
	open, closed := byClient(t, "open", "/a", perMinute(1)), byClient(t, "closed", "/b", perMinute(1))
	open.Fallback = guard.FallbackAllow
	for _, timeout := range []time.Duration{0, time.Millisecond} {
		g, _ := newGuard(t, guard.Config{Store: deaf{}, Rules: []guard.Rule{open, closed}, StoreTimeout: timeout})
		for path, want := range map[string]headgate.Verdict{"/a": headgate.Allow, "/b": headgate.Deny} {
			a := decide(t, g, request(path, "x"))
			if a.Verdict != want || a.Closest().Decision.Reason != headgate.StoreUnavailable || a.StoreError == nil {
				t.Errorf("%s with a timeout of %v: %v %v (%v)", path, timeout, a.Verdict, a.Closest().Decision.Reason, a.StoreError)
			}
			if err := g.Cancel(t.Context(), a); err != nil || !a.Results[0].Fallback {
				t.Errorf("%s: fallback %v; to cancel what took nothing gives %v", path, a.Results[0].Fallback, err)
			}
		}
	}
}

// counter counts answers.
type counter struct{ n int }

// Observe counts.
func (c *counter) Observe(*headgate.Request, *guard.Answer) { c.n++ }

func TestObserver(t *testing.T) {
	var c counter
	g, _ := newGuard(t, guard.Config{Observer: &c, Rules: []guard.Rule{byClient(t, "a", "/a", perMinute(1))}})
	decide(t, g, request("/a", "x"))
	decide(t, g, request("/none", "x"))
	if c.n != 2 {
		t.Errorf("%d answers were observed, want 2", c.n)
	}
}

// TestFaultyRules: the error names the rule.
func TestFaultyRules(t *testing.T) {
	none := byClient(t, "none", "/a")
	impossible := byClient(t, "impossible", "/a", headgate.Limit{Count: 1})
	twice := []guard.Rule{byClient(t, "twice", "/a", perMinute(1)), byClient(t, "twice", "/b", perMinute(1))}
	for name, rules := range map[string][]guard.Rule{"none": {none}, "impossible": {impossible}, "twice": twice} {
		store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := guard.New(guard.Config{Rules: rules, Store: store}); err == nil {
			t.Errorf("%s: New succeeds", name)
		} else {
			t.Log(err)
		}
	}
}

// TestDecideAllocatesNothing: a decision with a reused Answer allocates nothing.
func TestDecideAllocatesNothing(t *testing.T) {
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{byClient(t, "a", "/a", perMinute(1e6))}})
	req, a, ctx := request("/a", "client-1"), &guard.Answer{}, t.Context()
	if err := g.Decide(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(200, func() { _ = g.Decide(ctx, req, a) }); n != 0 {
		t.Errorf("a decision allocates %v times", n)
	}
}
