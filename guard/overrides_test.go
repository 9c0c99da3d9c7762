package guard_test

import (
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

// byAddress is a rule for every path that counts by the peer's address.
func byAddress(tb testing.TB, limit headgate.Limit, overrides ...guard.Override) guard.Rule {
	tb.Helper()
	part, err := rule.ParsePart("ip")
	if err != nil {
		tb.Fatal(err)
	}
	r := guard.Rule{Rule: rule.Rule{Name: "client", Key: []rule.Part{part}}, Overrides: overrides}
	r.Policies = []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: limit}}
	return r
}

func override(value string, until headgate.Instant, limits ...headgate.Limit) guard.Override {
	o := guard.Override{Value: value, Many: true, Unlimited: len(limits) == 0, Until: until}
	for _, l := range limits {
		o.Policies = append(o.Policies, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: l})
	}
	return o
}

func fromAddress(ip string) *headgate.Request {
	req := request("/", "x")
	req.IP = netip.MustParseAddr(ip)
	return req
}

// TestOverridesByNetwork: the longest network applies, and without a limit the rule neither counts nor refuses, with its bound of
// requests in flight and its ban.
func TestOverridesByNetwork(t *testing.T) {
	r := byAddress(t, perMinute(1), override("10.0.0.0/8", 0), override("10.1.0.0/16", 0, perMinute(3)), override("10.1.1.1", 0, perMinute(2)))
	r.Ban, r.InFlight = guard.Ban{For: time.Hour}, 1
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	for _, c := range []struct {
		ip   string
		pass int
	}{{"192.0.2.1", 1}, {"10.1.2.3", 3}, {"10.1.1.1", 2}, {"10.2.0.1", 9}} {
		for i := range 9 {
			ticket := guard.Ticket{Answer: new(guard.Answer)}
			if err := g.Admit(t.Context(), fromAddress(c.ip), &ticket); err != nil {
				t.Fatal(err)
			}
			if want, verdict := i < c.pass, ticket.Answer.Verdict; (verdict == headgate.Allow) != want {
				t.Errorf("request %d of %s: %v, want a pass: %t", i, c.ip, verdict, want)
			}
			ticket.Done(guard.Outcome{})
		}
	}
}

// TestOverridesEnd: an override has no effect from its end on, without a reload, and the next one that fits applies. Used units stay
// used when an override begins and when it ends. What an unlimited override lets pass is not counted.
func TestOverridesEnd(t *testing.T) {
	for _, algorithm := range headgate.Algorithms() {
		t.Run(algorithm.String(), func(t *testing.T) {
			clock := storetest.NewClock()
			g := calendarGuard(t, 0, memoryAt(t, clock), clock)
			start := clock.Now()
			hour := func(n int64) headgate.Limit { return headgate.Limit{Count: n, Per: time.Hour} }
			rules := func(overrides ...guard.Override) guard.Config {
				r := byAddress(t, hour(4), overrides...)
				for _, list := range append([][]headgate.Policy{r.Policies}, policiesOf(overrides)...) {
					for i := range list {
						if list[i].Algorithm = algorithm; algorithm == headgate.SlidingWindow {
							list[i].SubWindows = 4
						}
					}
				}
				return guard.Config{Rules: []guard.Rule{r}, Store: g.Store()}
			}
			// passes requests until one is refused, within a millisecond.
			passes := func() (n int) {
				for n < 40 && decide(t, g, fromAddress("10.1.2.3")).Verdict != headgate.Deny {
					n++
				}
				return n
			}
			step := func(what string, want int) {
				t.Helper()
				if got := passes(); got != want {
					t.Errorf("%s: %d pass, want %d", what, got, want)
				}
			}
			apply := func(c guard.Config) {
				t.Helper()
				if err := g.Reload(c); err != nil {
					t.Fatal(err)
				}
			}
			apply(rules())
			step("the rule's limit", 4)
			apply(rules(override("10.0.0.0/8", 0, hour(9)), override("10.1.0.0/16", start.Add(2*time.Second), hour(12)), override("10.1.2.0/24", start.Add(time.Second))))
			step("an unlimited network", 40)
			clock.Advance(time.Second - 1)
			step("a nanosecond before its end", 40)
			clock.Advance(1)
			step("the network around it has 12, of which 4 are used", 8)
			clock.Advance(time.Second)
			step("when that has ended, 12 of 9 are used", 0)
			apply(rules())
			step("12 of 4 are used", 0)
		})
	}
}

func policiesOf(overrides []guard.Override) (lists [][]headgate.Policy) {
	for i := range overrides {
		lists = append(lists, overrides[i].Policies)
	}
	return lists
}

// TestOverridesOfADecision: a decision with overrides by network, with ends and unlimited, allocates nothing.
func TestOverridesOfADecision(t *testing.T) {
	clock := storetest.NewClock()
	g := calendarGuard(t, 0, memoryAt(t, clock), clock)
	r := byAddress(t, perMinute(1000), override("10.0.0.0/8", 0, perMinute(2000)), override("10.1.0.0/16", clock.Now().Add(time.Hour)),
		override("10.1.2.0/24", clock.Now().Add(-time.Hour), perMinute(1)))
	if err := g.Reload(guard.Config{Rules: []guard.Rule{r}, Store: g.Store()}); err != nil {
		t.Fatal(err)
	}
	for ip, results := range map[string]int{"10.1.2.3": 0, "10.9.9.9": 1, "192.0.2.1": 1} {
		a, req := new(guard.Answer), fromAddress(ip)
		if n := testing.AllocsPerRun(200, func() { _ = g.Decide(t.Context(), req, a) }); n != 0 || len(a.Results) != results {
			t.Errorf("%s: %v allocations and %d results, want 0 and %d", ip, n, len(a.Results), results)
		}
		if rules := a.Matched(); len(rules) != 1 || rules[0].Name != "client" {
			t.Errorf("%s: matched %v", ip, rules)
		}
	}
	bad := byAddress(t, perMinute(1), guard.Override{Value: "10.0.0.1", Unlimited: true, Policies: r.Policies})
	if err := g.Reload(guard.Config{Rules: []guard.Rule{bad}, Store: g.Store()}); err == nil {
		t.Error("an unlimited override has limits")
	}
}

// BenchmarkDecideOverrides decides with overrides of single addresses and of networks.
func BenchmarkDecideOverrides(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		overrides := make([]guard.Override, n)
		for i := range overrides {
			overrides[i] = override(netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(10 + i>>16), byte(i >> 8), byte(i), 0}), 20+i%5).Masked().String(), 0, perMinute(1<<40))
			if i%5 != 4 {
				overrides[i].Value = netip.AddrFrom4([4]byte{byte(10 + i>>16), byte(i >> 8), byte(i), 7}).String()
			}
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			store, err := memory.New(memory.Config{MaxMemory: 16 << 20})
			if err != nil {
				b.Fatal(err)
			}
			g, err := guard.New(guard.Config{Rules: []guard.Rule{byAddress(b, perMinute(1<<40), overrides...)}, Store: store})
			if err != nil {
				b.Fatal(err)
			}
			requests := make([]*headgate.Request, 64)
			for i := range requests {
				requests[i] = fromAddress(fmt.Sprintf("10.0.%d.7", i%8))
			}
			var a guard.Answer
			for i := 0; b.Loop(); i++ {
				_ = g.Decide(b.Context(), requests[i%64], &a)
			}
		})
	}
}
