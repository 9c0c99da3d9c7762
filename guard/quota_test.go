package guard_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

const day = 24 * time.Hour

// included is a limit of a fixed window.
func included(n int64, per time.Duration) guard.QuotaLimit {
	return guard.QuotaLimit{Policy: headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: n, Per: per}}}
}

// upTo is included with a hard limit.
func upTo(n, hard int64) guard.QuotaLimit {
	l := included(n, 30*day)
	l.Hard = hard
	return l
}

func calls(limits ...guard.QuotaLimit) []guard.QuotaLimits {
	return []guard.QuotaLimits{{Quota: "calls", Limits: limits}}
}

func quotas(tb testing.TB, plans []guard.Plan, customers ...guard.Customer) *guard.Quotas {
	tb.Helper()
	q, err := guard.NewQuotas(plans, plans[0].Name, customers)
	if err != nil {
		tb.Fatal(err)
	}
	return q
}

// counting is a rule that counts the quota calls.
func counting(tb testing.TB, name, path string) guard.Rule {
	tb.Helper()
	r := byClient(tb, name, path)
	r.Quota = "calls"
	return r
}

func metering(n, hard int64) guard.Plan {
	return guard.Plan{Name: "paid", After: guard.AfterMeter, Quotas: calls(upTo(n, hard))}
}

// answer describes a decision as its caller sees it.
func answerOf(a *guard.Answer) string {
	r := a.Closest()
	if r == nil {
		return a.Verdict.String() + " uncounted"
	}
	return fmt.Sprintf("%s %s %d/%d metered %d", a.Verdict, r.Decision.Reason, r.Decision.Remaining, r.Decision.Limit, a.Metered())
}

func TestMeteredStory(t *testing.T) {
	plan := metering(10, 20)
	plan.Quotas[0].Limits[0].Soft = 70
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{plan})})
	for i, step := range []struct {
		cost int64
		want string
		soft bool
	}{
		{5, "allow within_limit 5/10 metered 0", false},
		{3, "allow soft_limit 2/10 metered 0", true},
		{5, "allow metered 0/10 metered 3", true}, // 2 units are left, and the request has 5.
		{6, "allow metered 0/10 metered 6", true},
		{2, "deny over_limit 0/10 metered 0", false}, // One unit is left below the hard limit, and no included one.
		{1, "allow metered 0/10 metered 1", true},
		{1, "deny over_limit 0/10 metered 0", false},
	} {
		req := request("/a", "x")
		req.Cost = step.cost
		a := decide(t, g, req)
		if got := answerOf(a); got != step.want || a.Results[0].AboveSoft != step.soft {
			t.Errorf("step %d: got %s, above soft %t, want %s, %t", i, got, a.Results[0].AboveSoft, step.want, step.soft)
		}
	}
	clock.Advance(30 * day)
	if got, want := answerOf(decide(t, g, request("/a", "x"))), "allow within_limit 9/10 metered 0"; got != want {
		t.Errorf("in the next period: got %s, want %s", got, want)
	}
}

func TestDegradeMarksUpToHard(t *testing.T) {
	plan := guard.Plan{Name: "free", After: guard.AfterDegrade, Header: "X-Slow", Value: "yes", Quotas: calls(upTo(1, 2))}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{plan})})
	for i, want := range []string{"allow within_limit 0/1 metered 0", "allow degraded 0/1 metered 0", "deny over_limit 0/1 metered 0"} {
		a := decide(t, g, request("/a", "x"))
		if got := answerOf(a); got != want {
			t.Errorf("request %d: got %s, want %s", i, got, want)
		}
		if x := a.Results[0].Rule.Exceed; x.Header != "X-Slow" || x.Value != "yes" {
			t.Errorf("request %d: got the mark %q: %q, want X-Slow: yes", i, x.Header, x.Value)
		}
	}
	if !slices.Contains(g.Marks(), "X-Slow") {
		t.Errorf("the marks are %v, want X-Slow in them: a client could send it", g.Marks())
	}
}

// model is the slow twin: one number for each customer, and each unit of a request on its own.
type model struct {
	used  map[string]int64
	start headgate.Instant // of the window
}

// take gives the number of metered units, or -1 for a refusal.
func (m *model) take(customer string, cost int64, l guard.QuotaLimit, meters bool) (metered int64) {
	most := l.Policy.Limit.Count
	if meters && l.Hard > 0 {
		most = l.Hard
	}
	if m.used[customer]+cost > most {
		return -1
	}
	for range cost {
		m.used[customer]++
		if m.used[customer] > l.Policy.Limit.Count {
			metered++
		}
	}
	return metered
}

// TestQuotasAreTheirTwin: random plans, customers, changes of both, raises, and requests in two versions of the
// configuration on one store.
func TestQuotasAreTheirTwin(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { quotasRun(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

// version is a guard with its version of the configuration.
type version struct {
	g     *guard.Guard
	plans []guard.Plan
	all   entries
}

// entries are the customers of a configuration of the twin.
type entries map[string]guard.Customer

// limitIn gives what a customer has at a time, by reading the whole configuration.
func limitIn(plans []guard.Plan, all entries, name string, now headgate.Instant) (l guard.QuotaLimit, meters bool) {
	c := all[name]
	plan := plans[0]
	for _, p := range plans {
		if p.Name == c.Plan {
			plan = p
		}
	}
	l = plan.Quotas[0].Limits[0]
	if len(c.Quotas) > 0 {
		l = c.Quotas[0].Limits[0]
	}
	raised := c.Raise != nil && now < c.Raise.Until
	if raised {
		l = c.Raise.Quotas[0].Limits[0]
	}
	if len(c.Spending) > 0 && l.Hard > 0 && !raised {
		l.Hard = min(l.Hard, max(c.Spending[0].Hard, l.Policy.Limit.Count))
	}
	return l, plan.After == guard.AfterMeter
}

func drawPlans(r *rand.Rand) []guard.Plan {
	plans := make([]guard.Plan, 3)
	for i := range plans {
		n := r.Int64N(12)
		plans[i] = guard.Plan{
			Name: fmt.Sprint("plan", i), After: []guard.After{guard.AfterReject, guard.AfterMeter}[r.IntN(2)],
			Quotas: calls(upTo(n, 1+n+r.Int64N(10))),
		}
	}
	return plans
}

func drawCustomer(r *rand.Rand, name string, now headgate.Instant) guard.Customer {
	c := guard.Customer{Name: name, Plan: []string{"", "plan0", "plan1", "plan2"}[r.IntN(4)]}
	if n := r.Int64N(20); r.IntN(3) == 0 {
		c.Quotas = calls(upTo(n, 1+n+r.Int64N(5)))
	}
	if r.IntN(3) == 0 {
		c.Spending = []guard.Spending{{Quota: "calls", Hard: r.Int64N(20)}}
	}
	if r.IntN(3) == 0 {
		c.Raise = &guard.Raise{Quotas: calls(upTo(15, 30)), Until: now.Add(time.Duration(1 + r.IntN(int(10*day))))}
	}
	return c
}

func quotasRun(t *testing.T, r *rand.Rand) {
	t.Helper()
	clock := storetest.NewClock()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"a", "b", "c", "d"}
	plans, all := drawPlans(r), entries{}
	config := guard.Config{Store: store, Clock: clock.Now, Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, plans)}
	g, err := guard.New(config)
	if err != nil {
		t.Fatal(err)
	}
	windowOf := func(now headgate.Instant) headgate.Instant { return now - now%headgate.Instant(30*day) }
	twin := model{used: map[string]int64{}, start: windowOf(clock.Now())}
	former := struct {
		version

		next    []guard.Plan // of g
		nextAll entries
	}{next: plans, nextAll: entries{}}
	for range 60 {
		switch r.IntN(6) {
		case 0: // A change of some customers, and sometimes of the plans.
			change := guard.QuotaChange{}
			for _, name := range names {
				switch r.IntN(4) {
				case 0:
					all[name] = drawCustomer(r, name, clock.Now())
					change.Customers = append(change.Customers, all[name])
				case 1:
					delete(all, name)
					change.Deleted = append(change.Deleted, name)
				}
			}
			if r.IntN(2) == 0 {
				plans = drawPlans(r)
				change.Plans = plans
			}
			if config.Quotas, err = config.Quotas.With(change); err != nil {
				t.Fatal(err)
			}
			if r.IntN(2) == 0 { // A new process, beside the one with the former version.
				former.version = version{g, former.next, former.nextAll}
				if g, err = guard.New(config); err != nil {
					t.Fatal(err)
				}
			} else if err := g.Reload(config); err != nil {
				t.Fatal(err)
			}
			former.next, former.nextAll = plans, maps.Clone(all)
		case 1:
			clock.Advance(time.Duration(r.IntN(int(4 * day))))
			if start := windowOf(clock.Now()); start != twin.start {
				twin = model{used: map[string]int64{}, start: start}
			}
		default:
			name := names[r.IntN(len(names))]
			req := request("/a", name)
			req.Cost = 1 + r.Int64N(4)
			by := version{g, plans, all}
			if r.IntN(3) == 0 && former.g != nil {
				by = former.version
			}
			l, meters := limitIn(by.plans, by.all, name, clock.Now())
			want := twin.take(name, req.Cost, l, meters)
			a := decide(t, by.g, req)
			got := a.Metered()
			if a.Verdict == headgate.Deny {
				got = -1
			}
			if got != want {
				t.Fatalf("%s costs %d under %+v, meters %t: got %d metered units (-1 is a refusal), want %d; used %d",
					name, req.Cost, l, meters, got, want, twin.used[name])
			}
			if got >= 0 && r.IntN(4) == 0 {
				if err := by.g.Cancel(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				twin.used[name] -= req.Cost
			}
		}
	}
}

// TestOneChargeForEachQuota: the first matching rule counts a request under a quota; another quota counts too.
func TestOneChargeForEachQuota(t *testing.T) {
	plan := guard.Plan{Name: "p", After: guard.AfterMeter, Quotas: []guard.QuotaLimits{
		{Quota: "calls", Limits: []guard.QuotaLimit{upTo(10, 20)}}, {Quota: "exports", Limits: []guard.QuotaLimit{upTo(1, 50)}},
	}}
	search, whole, exports := counting(t, "search", "/a/*"), counting(t, "all", "/*"), counting(t, "exports", "/a/*")
	search.Cost, exports.Quota, exports.Cost = 6, "exports", 2
	shadow := counting(t, "shadow", "/*")
	shadow.Mode = guard.Shadow
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{shadow, search, whole, exports}, Quotas: quotas(t, []guard.Plan{plan})})
	a := decide(t, g, request("/a/b", "x"))
	if len(a.Results) != 2 || a.Results[0].Rule.Name != "search" || a.Metered() != 1 {
		t.Errorf("got %d results, the first of rule %s, metered %d, want 2, of search and exports, and 1", len(a.Results),
			a.Results[0].Rule.Name, a.Metered())
	}
	if a = decide(t, g, request("/a/b", "x")); a.Metered() != 2+2 {
		t.Errorf("the units beyond two quotas: got %d, want 2 of calls and 2 of exports", a.Metered())
	}
	if got, want := answerOf(decide(t, g, request("/z", "x"))), "allow metered 0/10 metered 1"; got != want {
		t.Errorf("another rule of the quota: got %s, want %s: it counts with search", got, want)
	}
}

// TestLimitsOfAQuotaAreOneGroup: what the short limit refuses, the long one does not count.
func TestLimitsOfAQuotaAreOneGroup(t *testing.T) {
	short := included(2, time.Second)
	short.Policy.Algorithm = headgate.TokenBucket
	plan := guard.Plan{Name: "p", After: guard.AfterMeter, Quotas: calls(upTo(3, 9), short)}
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{plan})})
	for range 5 {
		decide(t, g, request("/a", "x")) // Two pass.
	}
	clock.Advance(time.Second)
	req := request("/a", "x")
	req.Cost = 2
	a := decide(t, g, req)
	if a.Verdict != headgate.Allow || a.Metered() != 1 || a.Results[0].Policy != "calls-30d" || a.Results[1].Policy != "calls-1s" {
		t.Errorf("got %s, with the policies %s and %s, want 1 metered unit of calls-30d", answerOf(a), a.Results[0].Policy, a.Results[1].Policy)
	}
}

func TestModeOfAPlan(t *testing.T) {
	plans := []guard.Plan{
		{Name: "enforced", Quotas: calls(included(1, day))},
		{Name: "off", Mode: guard.Off},
		{Name: "shadow", Mode: guard.Shadow, Quotas: calls(included(1, day))},
	}
	g, _ := newGuard(t, guard.Config{
		Rules:  []guard.Rule{counting(t, "api", "/a")},
		Quotas: quotas(t, plans, guard.Customer{Name: "s", Plan: "shadow"}, guard.Customer{Name: "o", Plan: "off"}),
	})
	for name, want := range map[string]string{"e": "deny over_limit 0/1 metered 0", "o": "allow uncounted", "s": "allow uncounted"} {
		decide(t, g, request("/a", name))
		a := decide(t, g, request("/a", name))
		if got := answerOf(a); got != want {
			t.Errorf("customer %s: got %s, want %s", name, got, want)
		}
		if name == "s" && (len(a.Results) != 1 || a.Results[0].Decision.Verdict != headgate.Deny || a.Results[0].Enforced()) {
			t.Errorf("in shadow: got %+v, want one refusal without effect", a.Results)
		}
	}
}

func TestQuotaInLocal(t *testing.T) {
	clock := storetest.NewClock()
	local, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	r := counting(t, "api", "/a")
	r.Fallback = guard.FallbackLocal
	g, _ := newGuard(t, guard.Config{
		Store: deaf{}, Local: local, LocalShare: 50, Rules: []guard.Rule{r},
		Quotas: quotas(t, []guard.Plan{metering(4, 8)}),
	})
	for i, want := range []string{
		"allow store_unavailable 1/2 metered 0", "allow store_unavailable 0/2 metered 0",
		"allow metered 0/2 metered 1", "allow metered 0/2 metered 1", "deny store_unavailable 0/2 metered 0",
	} {
		if got := answerOf(decide(t, g, request("/a", "x"))); got != want {
			t.Errorf("request %d: got %s, want %s", i, got, want)
		}
	}
}

func TestRefundOfAQuota(t *testing.T) {
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{metering(2, 9)})})
	req := request("/a", "x")
	req.Cost = 5
	decide(t, g, req)
	back := request("/a", "x")
	back.Cost, back.Kind = 4, headgate.Refund
	if got, want := answerOf(decide(t, g, back)), "allow within_limit 1/2 metered 0"; got != want {
		t.Errorf("a refund: got %s, want %s", got, want)
	}
	if got, want := answerOf(decide(t, g, req)), "allow metered 0/2 metered 4"; got != want {
		t.Errorf("after the refund: got %s, want %s", got, want)
	}
}

// TestSettledQuota: the counter has the real cost, which later requests see.
func TestSettledQuota(t *testing.T) {
	r := counting(t, "api", "/a")
	r.Settle = "X-Cost"
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}, Quotas: quotas(t, []guard.Plan{metering(10, 20)})})
	for i, c := range []struct{ real, want string }{{"9", "0"}, {"0", "0"}, {"0", "0"}, {"5", "0"}, {"0", "1"}} {
		ticket := guard.Ticket{Answer: new(guard.Answer)}
		if err := g.Admit(t.Context(), request("/a", "x"), &ticket); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(ticket.Answer.Metered()); got != c.want {
			t.Errorf("request %d: got %s metered units, want %s", i, got, c.want)
		}
		ticket.Done(guard.Outcome{End: guard.Answered, Status: 200, Header: stated("X-Cost", c.real)})
	}
}

func TestFaultyQuotas(t *testing.T) {
	ok := []guard.Plan{metering(1, 2)}
	leaky := included(1, day)
	leaky.Policy.Algorithm = headgate.LeakyBucket
	sliding := upTo(1, 2)
	sliding.Policy.Algorithm = headgate.SlidingLog
	soft := included(1, day)
	soft.Soft = 100
	one := func(l ...guard.QuotaLimit) []guard.Plan { return []guard.Plan{{Name: "paid", Quotas: calls(l...)}} }
	for want, c := range map[string]struct {
		plans     []guard.Plan
		customers []guard.Customer
	}{
		"plan gold is missing, and is the plan of customer": {ok, []guard.Customer{{Name: "x", Plan: "gold"}}},
		"listed twice":            {append(slices.Clone(ok), ok...), nil},
		"give it 1 to 32 limits":  {one(), nil},
		"the period 1d appears":   {one(included(1, day), included(2, day)), nil},
		"leaky_bucket is not":     {one(leaky), nil},
		"no hard limit":           {one(sliding), nil},
		"is below the limit":      {one(upTo(5, 4)), nil},
		"100 percent":             {one(soft), nil},
		"degrade has no header":   {[]guard.Plan{{Name: "paid", After: guard.AfterDegrade}}, nil},
		"is twice in a change":    {ok, []guard.Customer{{Name: "x"}, {Name: "x"}}},
		"a raise has no end":      {ok, []guard.Customer{{Name: "x", Raise: &guard.Raise{}}}},
		"hard limit -1 of calls":  {ok, []guard.Customer{{Name: "x", Spending: []guard.Spending{{Quota: "calls", Hard: -1}}}}},
		"mode 9 or after 0 is no": {[]guard.Plan{{Name: "paid", Mode: 9}}, nil},
	} {
		if _, err := guard.NewQuotas(c.plans, "paid", c.customers); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	if _, err := guard.NewQuotas(ok, "", nil); err == nil {
		t.Error("without a default plan: got no error")
	}
	q := quotas(t, ok)
	_, err := q.With(guard.QuotaChange{Plans: []guard.Plan{{Name: "other", Quotas: calls(upTo(1, 2))}}})
	if bad, found := errortype.As[*guard.PlansInUseError](err); !found || !slices.Equal(bad.Plans, []string{"paid"}) {
		t.Errorf("without the default plan: got %v, want a PlansInUseError", err)
	}
}

func TestTooManyLimits(t *testing.T) {
	if race.On {
		return // It has one goroutine and a limit for each of guard.MaxQuotaPolicies customers.
	}
	customers := make([]guard.Customer, guard.MaxQuotaPolicies)
	for i := range customers {
		customers[i] = guard.Customer{Name: fmt.Sprint(i), Quotas: calls(included(int64(10+i), day))}
	}
	_, err := guard.NewQuotas([]guard.Plan{metering(1, 2)}, "paid", customers)
	if bad, found := errortype.As[*guard.TooManyLimitsError](err); !found || bad.Limits != guard.MaxQuotaPolicies+1 {
		t.Errorf("got %v, want a TooManyLimitsError with %d limits", err, guard.MaxQuotaPolicies+1)
	}
	if _, err := guard.NewQuotas([]guard.Plan{metering(1, 2)}, "paid", customers[1:]); err != nil {
		t.Errorf("at the bound: %v", err)
	}
}

func TestFaultyQuotaRules(t *testing.T) {
	fits := quotas(t, []guard.Plan{metering(1, 2)})
	for want, change := range map[string]func(r *guard.Rule, c *guard.Config){
		"there are no plans":   func(_ *guard.Rule, c *guard.Config) { c.Quotas = nil },
		"a key of one part":    func(r *guard.Rule, _ *guard.Config) { r.Key = append(r.Key, r.Key...) },
		"leave out Policies":   func(r *guard.Rule, _ *guard.Config) { r.Soft = 5 },
		"no ban and no bound":  func(r *guard.Rule, _ *guard.Config) { r.InFlight = 5 },
		"the plan says what":   func(r *guard.Rule, _ *guard.Config) { r.Exceed = degrade() },
		`for its quota "gone"`: func(r *guard.Rule, _ *guard.Config) { r.Quota = "gone" },
	} {
		r := counting(t, "api", "/a")
		c := guard.Config{Quotas: fits, Store: deaf{}}
		change(&r, &c)
		c.Rules = []guard.Rule{r}
		if _, err := guard.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestQuotaAllocatesNothing(t *testing.T) {
	customer := guard.Customer{Name: "x", Raise: &guard.Raise{Quotas: calls(upTo(1, headgate.MaxUnits)), Until: 1 << 62}}
	g, _ := newGuard(t, guard.Config{
		Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{metering(1, 2)}, customer),
	})
	var a guard.Answer
	req := request("/a", "x")
	if n := testing.AllocsPerRun(100, func() { _ = g.Decide(t.Context(), req, &a) }); n != 0 || a.Metered() != 1 {
		t.Errorf("a metered request allocates %v times, and meters %d, want 0 and 1", n, a.Metered())
	}
}

// TestQuotaOfTheCalendar: the month of a customer begins on its own day, and metered units begin again with it.
func TestQuotaOfTheCalendar(t *testing.T) {
	plan := guard.Plan{Name: "paid", After: guard.AfterMeter, Calendar: calendar.Default(), Quotas: calls(guard.QuotaLimit{
		Policy: headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1, Calendar: headgate.Month}}, Hard: 3,
	})}
	own := calendar.Settings{Zone: time.UTC, WeekStarts: time.Monday, MonthStarts: 15}
	clock := storetest.NewClock()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	g, _ := newGuard(t, guard.Config{
		Store: store, Clock: clock.Now, Rules: []guard.Rule{counting(t, "api", "/a")},
		Quotas: quotas(t, []guard.Plan{plan}, guard.Customer{Name: "x", Calendar: &own}),
	})
	clock.Advance(time.Date(2031, time.March, 14, 23, 0, 0, 0, time.UTC).Sub(clock.Now().Time()))
	want := func(name, text string) {
		t.Helper()
		if got := answerOf(decide(t, g, request("/a", name))); got != text {
			t.Errorf("customer %s at %v: got %s, want %s", name, clock.Now().Time(), got, text)
		}
	}
	for _, name := range []string{"x", "y"} {
		want(name, "allow within_limit 0/1 metered 0")
		want(name, "allow metered 0/1 metered 1")
	}
	clock.Advance(2 * time.Hour)
	want("x", "allow within_limit 0/1 metered 0")
	want("y", "allow metered 0/1 metered 1")
	want("y", "deny over_limit 0/1 metered 0")
}

// TestPlansDifferInBurst: plans whose limits differ only in the burst are two plans.
func TestPlansDifferInBurst(t *testing.T) {
	bucket := func(burst int64) []guard.QuotaLimits {
		limit := headgate.Limit{Count: 1, Per: day, Burst: burst}
		return calls(guard.QuotaLimit{Policy: headgate.Policy{Algorithm: headgate.TokenBucket, Limit: limit}})
	}
	plans := []guard.Plan{{Name: "free", Quotas: bucket(2)}, {Name: "paid", Quotas: bucket(5)}}
	g, _ := newGuard(t, guard.Config{
		Rules: []guard.Rule{counting(t, "a", "/a")},
		Quotas: quotas(t, plans, guard.Customer{Name: "x", Plan: "paid"}, guard.Customer{Name: "y", Quotas: bucket(3)},
			guard.Customer{Name: "z", Quotas: bucket(4)}),
	})
	for name, burst := range map[string]int{"w": 2, "x": 5, "y": 3, "z": 4} {
		var a guard.Answer
		allowed := 0
		for range 6 {
			if err := g.Decide(t.Context(), request("/a", name), &a); err != nil {
				t.Fatal(err)
			}
			if a.Verdict == headgate.Allow {
				allowed++
			}
		}
		if allowed != burst {
			t.Errorf("customer %s: %d of 6 at once, want %d", name, allowed, burst)
		}
	}
}
