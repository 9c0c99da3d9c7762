package guard_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// stated gives the lookup of an outcome for an answer with one header.
func stated(name, value string) func(string) (string, bool) {
	return func(asked string) (string, bool) { return value, value != "" && asked == name }
}

// used gives the units that a rule "a" of ten a minute has counted, by a probe.
func used(t *testing.T, g *guard.Guard) int64 {
	t.Helper()
	ticket := entered(t, g, "x")
	r := &ticket.Answer.Results[0]
	n := r.Limit.Count - r.Decision.Remaining
	if ticket.Answer.Verdict == headgate.Allow {
		n-- // that of the probe
	}
	ticket.Done(guard.Outcome{End: guard.Answered, Status: 200, Header: stated("X-Cost", "0")})
	return n
}

// TestCountByStatus is a table of outcomes of one request under count: [401, 403].
func TestCountByStatus(t *testing.T) {
	for name, c := range map[string]struct {
		o    guard.Outcome
		want int64
	}{
		"a wrong password":                  {guard.Outcome{Status: 401}, 1},
		"a forbidden one":                   {guard.Outcome{Status: 403}, 1},
		"a correct password":                {guard.Outcome{Status: 200}, 0},
		"an error of the service":           {guard.Outcome{Status: 500}, 0},
		"no answer of the service":          {guard.Outcome{End: guard.Failed, Status: 502}, 0},
		"no status":                         {guard.Outcome{End: guard.Failed}, 1},
		"the client leaves before it":       {guard.Outcome{End: guard.ClientLeft}, 1},
		"the client leaves after a 401":     {guard.Outcome{End: guard.ClientLeft, Status: 401}, 1},
		"the client leaves after a 200":     {guard.Outcome{End: guard.ClientLeft, Status: 200}, 0},
		"the handler panics":                {guard.Outcome{End: guard.Panicked}, 1},
		"an upgraded connection":            {guard.Outcome{Status: 101}, 0},
		"gRPC OK":                           {guard.Outcome{GRPC: true}, 0},
		"gRPC UNAUTHENTICATED":              {guard.Outcome{GRPC: true, Status: 16}, 1},
		"gRPC PERMISSION_DENIED":            {guard.Outcome{GRPC: true, Status: 7}, 1},
		"gRPC, and the client leaves":       {guard.Outcome{End: guard.ClientLeft, GRPC: true, Status: 1}, 1},
		"gRPC, a handler panics":            {guard.Outcome{End: guard.Panicked, GRPC: true, Status: 2}, 1},
		"gRPC, an unknown code":             {guard.Outcome{GRPC: true, Status: 99}, 0},
		"gRPC through HTTP":                 {guard.Outcome{Status: 200, Header: stated("Grpc-Status", "16")}, 1},
		"gRPC through HTTP, OK":             {guard.Outcome{Status: 200, Header: stated("Grpc-Status", "0")}, 0},
		"gRPC through HTTP, ended early":    {guard.Outcome{End: guard.ClientLeft, Status: 200, Header: stated("Content-Type", "application/grpc+proto")}, 1},
		"HTML, and the client leaves":       {guard.Outcome{End: guard.ClientLeft, Status: 200, Header: stated("Content-Type", "text/html")}, 0},
		"gRPC through HTTP, a broken value": {guard.Outcome{Status: 200, Header: stated("Grpc-Status", "x")}, 0},
	} {
		r := byClient(t, "a", "/a", perMinute(10))
		r.Count = []int{401, 403}
		g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
		ticket := entered(t, g, "x")
		ticket.Forward()
		ticket.Done(c.o)
		if n := used(t, g); n != c.want {
			t.Errorf("%s: %d units counted, want %d", name, n, c.want)
		}
	}
}

// Requests in flight are counted, so that parallel attempts cannot pass together.
func TestParallelAttempts(t *testing.T) {
	r := byClient(t, "a", "/a", perMinute(5))
	r.Count = []int{401}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	var tickets []*guard.Ticket
	for range 5 {
		tickets = append(tickets, entered(t, g, "x"))
	}
	wantReason(t, entered(t, g, "x"), headgate.Deny, headgate.OverLimit)
	for _, ticket := range tickets[:4] {
		ticket.Done(guard.Outcome{Status: 401})
	}
	tickets[4].Done(guard.Outcome{Status: 200})
	wantReason(t, entered(t, g, "x"), headgate.Allow, headgate.WithinLimit)
	for range 1000 { // Correct logins of another client.
		ticket := entered(t, g, "y")
		wantReason(t, ticket, headgate.Allow, headgate.WithinLimit)
		ticket.Done(guard.Outcome{Status: 200})
	}
}

// TestSettledMean: with an unlimited overdraft, a client whose answers cost ten times the limit uses the limit in
// the long run, within one answer. The default forgives what is beyond twice the limit.
func TestSettledMean(t *testing.T) {
	for overdraft, most := range map[int64]int64{guard.UnlimitedOverdraft: 300, 900: 300, guard.DefaultOverdraft: 2200} {
		for _, algorithm := range []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow, headgate.SlidingLog} {
			r := byClient(t, "a", "/a", headgate.Limit{Count: 10, Per: time.Second})
			r.Settle, r.Overdraft, r.Policies[0].Algorithm = "X-Cost", overdraft, algorithm
			g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
			used := int64(0)
			for range 200 {
				if ticket := entered(t, g, "x"); ticket.Answer.Verdict == headgate.Allow {
					ticket.Forward()
					ticket.Done(guard.Outcome{Status: 200, Header: stated("X-Cost", "100")})
					used += 100
				}
				clock.Advance(100 * time.Millisecond)
			}
			if used < 100 || used > most {
				t.Errorf("overdraft %d%% of %s: %d units in 20 windows of 10, want at most %d", overdraft, algorithm, used, most)
			}
		}
	}
}

// TestSettle is a table of costs that an answer states, for an estimate of 4 of 10 a minute.
func TestSettle(t *testing.T) {
	for value, want := range map[string]int64{
		"4": 4, "0": 0, "1": 1, "9": 9, "20": 20, "21": 20, "9007199254740991": 20,
		// Without a valid value, the estimate stays.
		"": 4, "-1": 4, "+3": 4, "1.5": 4, "2,": 4, "9007199254740992": 4, "99999999999999999999": 4, "0x1": 4, "many": 4,
	} {
		r := byClient(t, "a", "/a", perMinute(10))
		r.Settle, r.Cost = "X-Cost", 4
		g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
		ticket := entered(t, g, "x")
		ticket.Forward()
		ticket.Done(guard.Outcome{Status: 200, Header: stated("X-Cost", value)})
		ticket.Done(guard.Outcome{Status: 200, Header: stated("X-Cost", value)})
		next := entered(t, g, "x")
		if passes := next.Answer.Verdict == headgate.Allow; passes != (want+4 <= 10) {
			t.Errorf("%q: the next request: %v, with %d of 10 units used", value, next.Answer.Verdict, want)
		}
		if charged := max(0, want-4); g.Settled("a").Charged != uint64(charged) {
			t.Errorf("%q: %+v, want %d units charged", value, g.Settled("a"), charged)
		}
		clock.Advance(2 * time.Minute)
		wantReason(t, entered(t, g, "x"), headgate.Allow, headgate.WithinLimit)
	}
}

// TestSettledSums: the units that a rule counts are the sum of the real costs, and of the estimates of
// requests without a valid one, whatever ends come in which order, across reloads.
func TestSettledSums(t *testing.T) {
	for _, algorithm := range []headgate.Algorithm{
		headgate.TokenBucket, headgate.FixedWindow, headgate.SlidingLog, headgate.SlidingWindow,
	} {
		for seed := range uint64(20) {
			p := headgate.Policy{Algorithm: algorithm, Limit: headgate.Limit{Count: 3000, Per: 240 * time.Hour}}
			if algorithm == headgate.SlidingWindow {
				p.SubWindows = 4
			}
			settledSums(t, rand.New(rand.NewPCG(seed, 1)), p)
		}
	}
}

func settledSums(t *testing.T, r *rand.Rand, p headgate.Policy) {
	t.Helper()
	rule := byClient(t, "a", "/a")
	rule.Policies, rule.Settle, rule.Cost = []headgate.Policy{p}, "X-Cost", 20
	store := inMemory(t, nil)
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{rule}, Store: store})
	sum, open := int64(0), []*guard.Ticket{}
	for range 60 {
		if r.IntN(9) == 0 {
			if err := g.Reload(guard.Config{Rules: []guard.Rule{rule}, Store: store}); err != nil {
				t.Fatal(err)
			}
		}
		open = append(open, entered(t, g, "x"))
		if r.IntN(3) == 0 {
			continue
		}
		i := r.IntN(len(open))
		ticket, cost := open[i], r.Int64N(45)
		open = append(open[:i], open[i+1:]...)
		value := fmt.Sprint(cost)
		if r.IntN(4) == 0 {
			cost, value = 20, "none"
		}
		sum += cost
		ticket.Forward()
		ticket.Done(guard.Outcome{End: guard.End(r.IntN(4)), Status: 200, Header: stated("X-Cost", value)})
	}
	sum += int64(20 * (len(open) + 1))
	probe := entered(t, g, "x")
	if d := probe.Answer.Results[0].Decision; d.Verdict != headgate.Allow || d.Limit-d.Remaining != sum {
		t.Errorf("%v: %d units are counted, want %d", p.Algorithm, d.Limit-d.Remaining, sum)
	}
}

// While the store does not answer, the part of this instance is settled in Local.
func TestSettleInLocal(t *testing.T) {
	r := local(byClient(t, "a", "/a", perMinute(40)))
	r.Settle, r.Cost = "X-Cost", 4
	g, _, _ := alone(t, r)
	ticket := entered(t, g, "x")
	ticket.Done(guard.Outcome{Status: 200, Header: stated("X-Cost", "8")})
	if d := entered(t, g, "x").Answer.Results[0].Decision; d.Verdict != headgate.Deny || d.Limit != 10 {
		t.Errorf("4 units after 8 of 10: %+v", d)
	}
}

func TestFaultyOutcomes(t *testing.T) {
	for want, change := range map[string]func(*guard.Rule){
		"status 99":          func(r *guard.Rule) { r.Count = []int{99} },
		`write "X-Cost"`:     func(r *guard.Rule) { r.Settle = "x-cost" },
		"another action":     func(r *guard.Rule) { r.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: time.Second} },
		"need a limit":       func(r *guard.Rule) { r.Policies, r.Ban.For, r.Settle = nil, time.Hour, "X-Cost" },
		"another algorithm":  func(r *guard.Rule) { r.Policies[0].Algorithm = headgate.LeakyBucket },
		"leave out prefetch": func(r *guard.Rule) { r.Settle, r.Policies[0].Hold = "X-Cost", time.Second },
		"has no effect":      func(r *guard.Rule) { r.Overdraft = 200 },
		"overdraft -2":       func(r *guard.Rule) { r.Settle, r.Overdraft = "X-Cost", -2 },
		"refused attempts": func(r *guard.Rule) {
			r.Settle, r.Overdraft, r.Policies[0].Algorithm, r.Policies[0].CountRejected = "X-Cost", 50, headgate.FixedWindow, true
		},
		"need a limit: write": func(r *guard.Rule) { r.Policies, r.InFlight = nil, 1 },
		"of an override": func(r *guard.Rule) {
			r.Overrides = []guard.Override{{Value: "x", Policies: []headgate.Policy{{Algorithm: headgate.LeakyBucket, Limit: perMinute(1)}}}}
		},
	} {
		r := byClient(t, "a", "/a", perMinute(5))
		r.Count = []int{401}
		change(&r)
		if want == "of an override" {
			want = "another algorithm"
		}
		if _, err := guard.New(guard.Config{Rules: []guard.Rule{r}, Store: inMemory(t, nil)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
}
