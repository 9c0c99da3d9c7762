package guard_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/rule"
)

// bucket is a rule for a path that counts by X-Client-Id with a token bucket.
func bucket(t *testing.T, name, path string, l headgate.Limit) guard.Rule {
	t.Helper()
	r := byClient(t, name, path, l)
	r.Policies[0].Algorithm = headgate.TokenBucket
	return r
}

// step is one request of a story and its expected decision.
type step struct {
	after   time.Duration
	verdict headgate.Verdict
	reason  headgate.Reason
	policy  string
	retry   time.Duration
}

// tell makes the requests of a story, all of one client, and compares the answers.
func tell(t *testing.T, g *guard.Guard, advance func(time.Duration), path string, story []step) {
	t.Helper()
	for i, want := range story {
		advance(want.after)
		a := decide(t, g, request(path, "a"))
		c := a.Closest()
		if a.Verdict != want.verdict || c.Decision.Reason != want.reason || want.policy != "" && c.Policy != want.policy ||
			want.retry > 0 && a.RetryAfter() != want.retry {
			t.Errorf("request %d: %v %v by %s, retry after %v; want %v %v by %s, retry after %v",
				i, a.Verdict, c.Decision.Reason, c.Policy, a.RetryAfter(), want.verdict, want.reason, want.policy, want.retry)
		}
	}
}

func TestSoft(t *testing.T) {
	r := byClient(t, "search", "/p", perMinute(5))
	r.Soft = 60
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	tell(t, g, clock.Advance, "/p", []step{
		{verdict: headgate.Allow, reason: headgate.WithinLimit},
		{verdict: headgate.Allow, reason: headgate.WithinLimit},
		{verdict: headgate.Allow, reason: headgate.WithinLimit}, // 3 of 5 are 60 %, which is not above the soft limit.
		{verdict: headgate.Allow, reason: headgate.SoftLimit},
		{verdict: headgate.Allow, reason: headgate.SoftLimit},
		{verdict: headgate.Deny, reason: headgate.OverLimit},
		{after: time.Minute, verdict: headgate.Allow, reason: headgate.WithinLimit},
	})
}

func TestDelay(t *testing.T) {
	r := bucket(t, "slow", "/p", headgate.Limit{Count: 1, Per: time.Second, Burst: 1})
	r.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: 2 * time.Second}
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	tell(t, g, clock.Advance, "/p", []step{
		{verdict: headgate.Allow, reason: headgate.WithinLimit},
		{verdict: headgate.Wait, reason: headgate.Scheduled, retry: time.Second},
		{verdict: headgate.Wait, reason: headgate.Scheduled, retry: 2 * time.Second},
		{verdict: headgate.Deny, reason: headgate.WaitTooLong},
		{after: time.Second, verdict: headgate.Wait, reason: headgate.Scheduled, retry: 2 * time.Second},
	})
}

// Waiters are counted over all keys of a rule. A request without a free place is refused, and its
// booking is returned.
func TestMaxWaiters(t *testing.T) {
	r := bucket(t, "slow", "/p", headgate.Limit{Count: 1, Per: time.Minute, Burst: 1})
	r.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: time.Hour, MaxWaiters: 2}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	var waiting []*guard.Answer
	for _, client := range []string{"a", "b"} {
		decide(t, g, request("/p", client))
		waiting = append(waiting, decide(t, g, request("/p", client)))
	}
	decide(t, g, request("/p", "c"))
	for range 3 { // The answer stays the same: a refused booking changes nothing.
		a := decide(t, g, request("/p", "c"))
		if a.Verdict != headgate.Deny || a.Closest().Decision.Reason != headgate.TooManyWaiters || fields.Status(a) != 503 || a.RetryAfter() != time.Minute {
			t.Errorf("the third waiter: %v %v, retry after %v", a.Verdict, a.Closest().Decision.Reason, a.RetryAfter())
		}
	}
	if n := g.Waiting("slow"); n != 2 {
		t.Errorf("%d wait, want 2", n)
	}
	for _, a := range waiting {
		if err := g.Cancel(t.Context(), a); err != nil {
			t.Error(err)
		}
	}
	if n := g.Waiting("slow"); n != 0 {
		t.Errorf("%d wait when all are gone", n)
	}
	if a := decide(t, g, request("/p", "c")); a.Verdict != headgate.Wait {
		t.Errorf("with places free again: %v", a.Verdict)
	} else if err := g.Cancel(t.Context(), a); err != nil {
		t.Error(err)
	}
}

func TestDegrade(t *testing.T) {
	r := byClient(t, "search", "/p", perMinute(2))
	r.Exceed = guard.Exceed{Action: guard.Degrade, Header: "X-Degraded", Value: "1"}
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	tell(t, g, clock.Advance, "/p", []step{
		{verdict: headgate.Allow, reason: headgate.WithinLimit},
		{verdict: headgate.Allow, reason: headgate.WithinLimit},
		{verdict: headgate.Allow, reason: headgate.Degraded},
		{verdict: headgate.Allow, reason: headgate.Degraded},
	})
	if marks := fmt.Sprint(g.Marks()); marks != "[Headgate-Warning Headgate_warning X-Degraded X_degraded]" {
		t.Errorf("marks are %s", marks)
	}
}

// TestComposition: soft, then degrade, then refuse, then ban, on one rule.
func TestComposition(t *testing.T) {
	r := byClient(t, "search", "/p", perMinute(4))
	r.Soft = 50
	r.Exceed = guard.Exceed{
		Action: guard.Degrade, Header: "X-Degraded", Value: "1", Status: 403,
		Hard: headgate.Policy{Algorithm: headgate.FixedWindow, Limit: perMinute(6)},
	}
	r.Ban = guard.Ban{After: perMinute(8), For: time.Hour}
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	tell(t, g, clock.Advance, "/p", []step{
		{verdict: headgate.Allow, reason: headgate.WithinLimit},
		{verdict: headgate.Allow, reason: headgate.WithinLimit},
		{verdict: headgate.Allow, reason: headgate.SoftLimit},
		{verdict: headgate.Allow, reason: headgate.SoftLimit},
		{verdict: headgate.Allow, reason: headgate.Degraded},
		{verdict: headgate.Allow, reason: headgate.Degraded},
		{verdict: headgate.Deny, reason: headgate.OverLimit, policy: "search-hard"},
		{verdict: headgate.Deny, reason: headgate.OverLimit, policy: "search-hard"},
		{verdict: headgate.Deny, reason: headgate.Banned, policy: "search-ban", retry: time.Hour + time.Minute},
		{after: time.Hour, verdict: headgate.Deny, reason: headgate.Banned, policy: "search-ban", retry: time.Minute},
		{after: time.Minute, verdict: headgate.Allow, reason: headgate.WithinLimit},
	})
	if a := decide(t, g, request("/p", "a")); fields.Status(a) != 403 {
		t.Errorf("status %d, want the rule's", fields.Status(a))
	}
}

// TestDelayThenBan: soft, then delay, then refuse, then ban, on one rule.
func TestDelayThenBan(t *testing.T) {
	r := bucket(t, "slow", "/p", headgate.Limit{Count: 1, Per: time.Second, Burst: 2})
	r.Soft = 50
	r.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: time.Second}
	r.Ban = guard.Ban{After: perMinute(4), For: time.Minute}
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	tell(t, g, clock.Advance, "/p", []step{
		{verdict: headgate.Allow, reason: headgate.WithinLimit},
		{verdict: headgate.Allow, reason: headgate.SoftLimit},
		{verdict: headgate.Wait, reason: headgate.Scheduled, retry: time.Second},
		{verdict: headgate.Deny, reason: headgate.WaitTooLong},
		{verdict: headgate.Deny, reason: headgate.Banned, policy: "slow-ban", retry: 2 * time.Minute},
		{after: 2 * time.Minute, verdict: headgate.Allow, reason: headgate.WithinLimit},
	})
}

// TestDegradeWithBan: without a hard limit, a rule that degrades refuses nothing. Its ban degrades
// requests for a longer time.
func TestDegradeWithBan(t *testing.T) {
	r := byClient(t, "search", "/p", perMinute(1))
	r.Exceed = guard.Exceed{Action: guard.Degrade, Header: "X-Degraded", Value: "1"}
	r.Ban = guard.Ban{For: time.Hour}
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	tell(t, g, clock.Advance, "/p", []step{
		{verdict: headgate.Allow, reason: headgate.WithinLimit},
		{verdict: headgate.Allow, reason: headgate.Degraded},
		{after: time.Hour, verdict: headgate.Allow, reason: headgate.Degraded},
		{after: time.Minute, verdict: headgate.Allow, reason: headgate.WithinLimit},
	})
}

// TestDegradeIsUndone: when another rule refuses, the units of a rule that degrades are returned,
// unless the rules count independently.
func TestDegradeIsUndone(t *testing.T) {
	for _, independent := range []bool{false, true} {
		search := byClient(t, "search", "/p", perMinute(10))
		search.Exceed = guard.Exceed{Action: guard.Degrade, Header: "X-Degraded", Value: "1"}
		g, _ := newGuard(t, guard.Config{Independent: independent, Rules: []guard.Rule{search, byClient(t, "narrow", "/p", perMinute(1))}})
		want := int64(9)
		for i := range 3 {
			a := decide(t, g, request("/p", "a"))
			if got := a.Results[0].Decision.Remaining; i > 0 && got != want-1 {
				t.Errorf("independent %v, request %d: search has %d left, want %d", independent, i, got, want-1)
			}
			if independent && i > 0 {
				want--
			}
		}
	}
}

func TestRedirectStatus(t *testing.T) {
	for status, want := range map[int]int{0: 302, 307: 307} {
		r := byClient(t, "a", "/p", perMinute(0))
		r.Exceed = guard.Exceed{Action: guard.Redirect, Location: "/sorry", Status: status}
		g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
		if a := decide(t, g, request("/p", "a")); a.Verdict != headgate.Deny || fields.Status(a) != want {
			t.Errorf("%v with status %d, want %d", a.Verdict, fields.Status(a), want)
		}
	}
}

// TestArticleBan: article 5's limit of 2,000 in 1,200 s, with a ban of 3,600 s.
func TestArticleBan(t *testing.T) {
	window := headgate.Limit{Count: 2000, Per: 1200 * time.Second}
	throttle := byClient(t, "throttle", "/throttle", window)
	banned := byClient(t, "ban", "/ban", window)
	banned.Ban = guard.Ban{For: 3600 * time.Second}
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{throttle, banned}})
	refused := 0
	for range 2500 {
		if decide(t, g, request("/throttle", "a")).Verdict == headgate.Deny {
			refused++
		}
	}
	if refused != 500 {
		t.Errorf("throttle refuses %d of 2,500, want 500", refused)
	}
	for i := range 2000 {
		if a := decide(t, g, request("/ban", "a")); a.Verdict != headgate.Allow {
			t.Fatalf("request %d: %v", i, a.Verdict)
		}
	}
	tell(t, g, clock.Advance, "/ban", []step{
		{verdict: headgate.Deny, reason: headgate.Banned, retry: 4800 * time.Second},
		{after: 1200 * time.Second, verdict: headgate.Deny, reason: headgate.Banned, retry: 3600 * time.Second},
		{after: 3599 * time.Second, verdict: headgate.Deny, reason: headgate.Banned, retry: time.Second},
		{after: time.Second, verdict: headgate.Allow, reason: headgate.WithinLimit},
	})
	if a := decide(t, g, request("/ban", "b")); a.Verdict != headgate.Allow {
		t.Errorf("another client: %v", a.Verdict)
	}
}

func TestBansAreListedAndLifted(t *testing.T) {
	r := byClient(t, "login", "/p", perMinute(1))
	r.Ban = guard.Ban{After: perMinute(2), For: time.Hour}
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	for range 3 {
		decide(t, g, request("/p", "a"))
		decide(t, g, request("/p", "b\n"))
	}
	now := clock.Now().Time()
	bans, more := g.Bans(now)
	if len(bans) != 2 || more || bans[0].Rule != "login" || bans[1].Key != `login header:X-Client-Id="b\n"` ||
		!bans[0].Until.Equal(now.Add(time.Hour+time.Minute)) {
		t.Fatalf("bans are %+v", bans)
	}
	for _, id := range []string{"", "nonsense", "0000000000000000"} {
		if lifted, err := g.Lift(t.Context(), id); lifted || err != nil {
			t.Errorf("Lift(%q) = %v, %v", id, lifted, err)
		}
	}
	if lifted, err := g.Lift(t.Context(), bans[0].ID); !lifted || err != nil {
		t.Errorf("Lift gives %v, %v", lifted, err)
	}
	clock.Advance(time.Minute) // The window of the limit has ended.
	if a := decide(t, g, request("/p", "a")); a.Verdict != headgate.Allow {
		t.Errorf("lifted: %v %v", a.Verdict, a.Closest().Decision.Reason)
	}
	if a := decide(t, g, request("/p", "b\n")); a.Verdict != headgate.Deny {
		t.Errorf("not lifted: %v", a.Verdict)
	}
	if bans, _ := g.Bans(now.Add(2 * time.Hour)); len(bans) != 0 {
		t.Errorf("bans that have ended: %+v", bans)
	}
}

func TestOverrides(t *testing.T) {
	r := byClient(t, "a", "/p", perMinute(1))
	r.Overrides = []guard.Override{
		{Value: "gold", Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: perMinute(3)}}},
		{Value: "blocked", Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: perMinute(0)}}},
	}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	for client, want := range map[string]int{"gold": 3, "blocked": 0, "other": 1} {
		allowed := 0
		for range 5 {
			a := decide(t, g, request("/p", client))
			if a.Verdict == headgate.Allow {
				allowed++
			}
			if got := a.Closest().Limit.Count; got != int64(want) {
				t.Errorf("%s is told of %d", client, got)
			}
		}
		if allowed != want {
			t.Errorf("%s: %d of 5 pass, want %d", client, allowed, want)
		}
	}
}

func TestCostFromHeader(t *testing.T) {
	r := byClient(t, "a", "/p", perMinute(10))
	r.Cost, r.CostHeader, r.MaxCost = 2, "X-Cost", 5
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	left := int64(10)
	for _, c := range []struct {
		text string
		cost int64 // 0 means that the text is refused
	}{
		{"3", 3}, {"", 0}, {"0", 0}, {"-1", 0}, {"+1", 0}, {"6", 0}, {"1e3", 0}, {"99999999999999999999", 0}, {" 1", 0}, {"5", 5},
	} {
		req := request("/p", "x")
		req.Header = headers{"X-Client-Id": "x", "X-Cost": c.text}
		var a guard.Answer
		err := g.Decide(t.Context(), req, &a)
		bad, found := errortype.As[*guard.CostError](err)
		if (c.cost == 0) != (found && errors.Is(err, headgate.ErrBadCost) && bad.Header == "X-Cost") {
			t.Errorf("%q gives %v", c.text, err)
		}
		left -= c.cost
		if err == nil && a.Closest().Decision.Remaining != left {
			t.Errorf("%q leaves %d, want %d", c.text, a.Closest().Decision.Remaining, left)
		}
	}
	if a := decide(t, g, request("/p", "x")); a.Closest().Decision.Remaining != 0 { // The rule's own limit is 2.
		t.Errorf("without the header %d are left, want 0", a.Closest().Decision.Remaining)
	}
	r.Mode = guard.Shadow
	g, _ = newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	req := request("/p", "x")
	req.Header = headers{"X-Client-Id": "x", "X-Cost": "many"}
	if a := decide(t, g, req); a.Verdict != headgate.Allow || a.Results[0].Decision.Verdict != headgate.Deny {
		t.Errorf("a bad cost for a shadow rule: %v, the rule %v", a.Verdict, a.Results[0].Decision.Verdict)
	}
}

func TestReload(t *testing.T) {
	slow := bucket(t, "slow", "/slow", headgate.Limit{Count: 1, Per: time.Minute, Burst: 1})
	slow.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: time.Hour}
	login := byClient(t, "login", "/login", perMinute(2))
	login.Ban = guard.Ban{For: time.Hour}
	c := guard.Config{Rules: []guard.Rule{slow, login, byClient(t, "old", "/old", perMinute(1))}}
	g, clock := newGuard(t, c)
	decide(t, g, request("/slow", "a"))
	first := decide(t, g, request("/slow", "a"))
	for range 3 {
		decide(t, g, request("/login", "a"))
	}
	// The rules have another order, an additional limit, and one rule less.
	login.Policies = []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1000, Per: time.Hour}}, login.Policies[0]}
	login.Ban = guard.Ban{After: perMinute(2), For: time.Hour}
	next := guard.Config{Rules: []guard.Rule{login, slow}}
	if err := g.Reload(next); err == nil {
		t.Error("a reload without the store is taken")
	}
	next.Store = g.Store()
	if err := g.Reload(next); err != nil {
		t.Fatal(err)
	}
	bad := next
	bad.Rules = []guard.Rule{{Rule: rule.Rule{Name: "bad"}}}
	if err := g.Reload(bad); err == nil {
		t.Error("a bad reload is taken")
	}
	if a := decide(t, g, request("/login", "a")); a.Verdict != headgate.Deny || a.Closest().Decision.Reason != headgate.Banned {
		t.Errorf("the ban did not survive: %v", a.Verdict)
	}
	if bans, _ := g.Bans(clock.Now().Time()); len(bans) != 1 {
		t.Errorf("bans after the reload: %+v", bans)
	}
	if a := decide(t, g, request("/slow", "a")); a.RetryAfter() != 2*time.Minute {
		t.Errorf("the next departure is in %v, want 2m: bookings did not survive", a.RetryAfter())
	} else if err := g.Cancel(t.Context(), a); err != nil {
		t.Error(err)
	}
	if n := g.Waiting("slow"); n != 1 {
		t.Errorf("%d wait for slow, want 1", n)
	}
	if err := g.Cancel(t.Context(), first); err != nil {
		t.Error(err)
	}
	if n := g.Waiting("slow"); n != 0 {
		t.Errorf("%d wait for slow, want 0", n)
	}
	if a := decide(t, g, request("/old", "a")); len(a.Results) != 0 {
		t.Error("a rule that is gone still speaks")
	}
}

// A shadow rule gives exactly the decision that it would give if enforced alone.
func TestShadowSaysWhatEnforceWould(t *testing.T) {
	build := func(mode guard.Mode) guard.Config {
		soft := byClient(t, "soft", "/p", perMinute(4))
		soft.Soft = 50
		soft.Exceed = guard.Exceed{
			Action: guard.Degrade, Header: "X-Degraded", Value: "1",
			Hard: headgate.Policy{Algorithm: headgate.FixedWindow, Limit: perMinute(6)},
		}
		soft.Ban = guard.Ban{After: perMinute(8), For: 2 * time.Minute}
		slow := bucket(t, "slow", "/q", headgate.Limit{Count: 6, Per: time.Minute, Burst: 2})
		slow.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: time.Minute, MaxWaiters: 3}
		soft.Mode, slow.Mode = mode, mode
		return guard.Config{Rules: []guard.Rule{soft, slow}}
	}
	enforced, one := newGuard(t, build(guard.Enforce))
	shadowed, other := newGuard(t, build(guard.Shadow))
	for i := range 200 {
		path := []string{"/p", "/q"}[i%2]
		for _, client := range []string{"a", "b"}[:1+i%3/2] {
			x, y := decide(t, enforced, request(path, client)), decide(t, shadowed, request(path, client))
			if y.Verdict != headgate.Allow || y.Closest() != nil {
				t.Fatalf("request %d: a shadow rule acts: %v", i, y.Verdict)
			}
			for n := range x.Results {
				d, e := x.Results[n].Decision, y.Results[n].Decision
				d.Receipt, e.Receipt = headgate.Receipt{}, headgate.Receipt{}
				if d != e {
					t.Fatalf("request %d, %s: enforced %+v, in shadow %+v", i, x.Results[n].Policy, d, e)
				}
			}
		}
		if n, m := enforced.Waiting("slow"), shadowed.Waiting("slow"); n != m {
			t.Fatalf("request %d: %d wait, %d in shadow", i, n, m)
		}
		one.Advance(1700 * time.Millisecond)
		other.Advance(1700 * time.Millisecond)
	}
}

func TestStatusWithoutAnAnswer(t *testing.T) {
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{byClient(t, "a", "/p", perMinute(1))}, Store: deaf{}})
	a := decide(t, g, request("/p", "a"))
	if fields.Status(a) != 503 || a.StoreError == nil {
		t.Errorf("status %d, store error %v", fields.Status(a), a.StoreError)
	}
}
