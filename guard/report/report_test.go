package report

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/rule"
)

func TestMain(m *testing.M) { leak.Main(m) }

// rules returns two enforced rules, one shadow rule and one rule that is off. The first
// rule has two limits.
func rules() []guard.Rule {
	limits := []headgate.Policy{
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 500, Per: 2 * time.Second}},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 2000, Per: 10 * time.Second}},
	}
	return []guard.Rule{
		{Rule: rule.Rule{Name: "product"}, Policies: limits},
		{Rule: rule.Rule{Name: "search"}, Policies: limits[:1]},
		{Rule: rule.Rule{Name: "crawl"}, Policies: limits[:1], Mode: guard.Shadow},
		{Rule: rule.Rule{Name: "old"}, Policies: limits[:1], Mode: guard.Off},
	}
}

func answer(all []guard.Rule, results ...guard.Result) *guard.Answer {
	for i := range results {
		results[i].Rule = &all[results[i].Number]
		results[i].Policy = all[results[i].Number].Name
	}
	return &guard.Answer{Results: results}
}

func allow(number int) guard.Result {
	return guard.Result{Number: number, Decision: headgate.Decision{Verdict: headgate.Allow, Reason: headgate.WithinLimit, At: 1}}
}

func deny(number int, reason headgate.Reason) guard.Result {
	return guard.Result{Number: number, Decision: headgate.Decision{
		Verdict: headgate.Deny, Reason: reason, RetryAfter: time.Second, Limit: 500, At: 2,
	}}
}

func (r *Report) count(name string, v headgate.Verdict, reason headgate.Reason) uint64 {
	for _, counted := range r.Rules() {
		for _, n := range counted.Counts {
			if counted.Rule.Name == name && n.Verdict == v && n.Reason == reason {
				return n.N
			}
		}
	}
	return 0
}

func TestCounts(t *testing.T) {
	all := rules()
	r := New(Config{})
	o := r.Follow(all)
	defer r.Close()
	o.Observe(nil, answer(all))                                        // No rule matched.
	o.Observe(nil, answer(all, allow(0), allow(0), allow(1)))          // The two limits of product count as one decision.
	o.Observe(nil, answer(all, allow(0), deny(0, headgate.OverLimit))) // The strictest limit counts.
	o.Observe(nil, answer(all, deny(0, headgate.OverLimit), deny(0, headgate.Never), deny(2, headgate.StoreFull)))
	o.Observe(nil, answer(append(all, guard.Rule{}), deny(4, headgate.OverLimit))) // This rule is unknown to the report.
	for _, c := range []struct {
		rule   string
		v      headgate.Verdict
		reason headgate.Reason
		want   uint64
	}{
		{"product", headgate.Allow, headgate.WithinLimit, 1},
		{"product", headgate.Deny, headgate.OverLimit, 1},
		{"product", headgate.Deny, headgate.Never, 1},
		{"search", headgate.Allow, headgate.WithinLimit, 1},
		{"search", headgate.Deny, headgate.OverLimit, 0},
		{"crawl", headgate.Deny, headgate.StoreFull, 1},
	} {
		if got := r.count(c.rule, c.v, c.reason); got != c.want {
			t.Errorf("%s %v %v: %d, want %d", c.rule, c.v, c.reason, got, c.want)
		}
	}
	if got := r.Unmatched(); got != 1 {
		t.Errorf("got %d unmatched requests, want 1", got)
	}
	counted := r.Rules()
	if len(counted) != 3 {
		t.Fatalf("got %d rules, want the 3 that are not off", len(counted))
	}
	// A rule shows its usual counts with 0, so that a rate over them starts at 0.
	if got := counted[1].Counts; len(got) != 2 || got[1].N != 0 {
		t.Errorf("search: got counts %v, want allow and deny", got)
	}
	if got := LimitsOf(counted[0].Rule); got != "500/2s, 2000/10s" {
		t.Errorf("limits %q", got)
	}
}

func (r *Report) fallbacksOf(name string) []FallbackCount {
	for _, counted := range r.Rules() {
		if counted.Rule.Name == name {
			return counted.Fallbacks
		}
	}
	return nil
}

// TestFallbacks checks that a fallback counts once for each rule, and also as a
// decision. A caller that had left counts for no rule.
func TestFallbacks(t *testing.T) {
	all := rules()
	all[1].Fallback = guard.FallbackLocal
	r := New(Config{})
	o := r.Follow(all)
	defer r.Close()
	fell := func(number int) guard.Result {
		result := deny(number, headgate.StoreUnavailable)
		result.Fallback = true
		return result
	}
	o.Observe(nil, answer(all, allow(0), allow(1)))
	o.Observe(nil, answer(all, fell(0), fell(0), fell(1)))
	o.Observe(nil, answer(all, fell(1)))
	gone := answer(all, fell(0), fell(1))
	gone.StoreError = fmt.Errorf("%w: reset", guard.ErrCallerGone)
	o.Observe(nil, gone)
	failed := answer(all, fell(1))
	failed.StoreError = context.DeadlineExceeded
	o.Observe(nil, failed)
	for name, want := range map[string]string{"product": "[{deny 1}]", "search": "[{local 3}]", "crawl": "[{deny 0}]"} {
		if got := fmt.Sprint(r.fallbacksOf(name)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if n, unavailable := r.Abandoned(), r.count("search", headgate.Deny, headgate.StoreUnavailable); n != 1 || unavailable != 3 {
		t.Errorf("got %d abandoned, want 1; got %d unavailable, want 3", n, unavailable)
	}
	all[1].Fallback = guard.FallbackAllow
	r.Follow(all)
	if got := fmt.Sprint(r.fallbacksOf("search")); got != "[{allow 0} {local 3}]" {
		t.Errorf("after a reload: %s", got)
	}
}

// linesOf returns the fields of each line of a log.
func linesOf(t *testing.T, log *logs.Text) []map[string]any {
	t.Helper()
	var all []map[string]any
	for text := range strings.Lines(log.String()) {
		var one map[string]any
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		all = append(all, one)
	}
	return all
}

func TestSampledLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, all := new(logs.Text), rules()
		r := New(Config{Log: slog.New(slog.NewJSONHandler(out, nil)), PerSecond: 3})
		o := r.Follow(all)
		for range 2 {
			for range 100 {
				o.Observe(nil, answer(all, allow(0)))
				o.Observe(nil, answer(all, deny(0, headgate.OverLimit)))
			}
			<-time.After(time.Second)
		}
		r.Close()
		r.Close() // A second Close does nothing.
		o.Observe(nil, answer(all, deny(0, headgate.OverLimit)))
		got := linesOf(t, out)
		if len(got) < 6 {
			t.Fatalf("got %d lines, want 3 in each of 2 seconds: %v", len(got), got)
		}
		for name, want := range map[string]any{
			"msg": "decision", "rule": "product", "policy": "product", "mode": "enforce", "verdict": "deny", "reason": "over_limit",
			"at": 2.0, "limit": 500.0, "remaining": 0.0, "retry_after": "1s",
		} {
			if got[0][name] != want {
				t.Errorf("%s is %v, want %v", name, got[0][name], want)
			}
		}
		suppressed, written := 0.0, 0
		for _, line := range got {
			if line["msg"] == "decision" {
				written++
			}
			if n, ok := line["suppressed"].(float64); ok {
				suppressed += n
			}
		}
		if written != 6 || suppressed != 194 {
			t.Errorf("got %d lines and %v suppressed lines, want 6 and 194", written, suppressed)
		}
	})
}

func TestAllAndNone(t *testing.T) {
	for which, want := range map[Decisions]int{All: 3, None: 0} {
		out, all := new(logs.Text), rules()
		r := New(Config{Log: slog.New(slog.NewJSONHandler(out, nil)), Decisions: which})
		o := r.Follow(all)
		o.Observe(nil, answer(all, allow(0), allow(0), deny(1, headgate.OverLimit)))
		o.Observe(nil, answer(all, allow(2)))
		r.Close()
		if got := linesOf(t, out); len(got) != want {
			t.Errorf("%v logs %v, want %d lines", which, got, want)
		}
	}
}

// A blocked log delays no request.
func TestLogThatBlocks(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		all, free := rules(), make(chan struct{})
		r := New(Config{Log: slog.New(slog.NewJSONHandler(blocking(free), nil)), Decisions: All})
		o := r.Follow(all)
		for range queueOfAll + 1000 {
			o.Observe(nil, answer(all, allow(0)))
		}
		close(free)
		r.Close()
	})
}

type blocking chan struct{}

func (b blocking) Write(p []byte) (int, error) {
	<-b
	return len(p), nil
}

func TestHistogram(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{0, time.Microsecond, time.Microsecond + 1, time.Millisecond, time.Hour} {
		h.Observe(d)
	}
	got := h.Distribution()
	if got.Count != 5 || got.Sum != time.Hour+time.Millisecond+2*time.Microsecond+1 {
		t.Errorf("wrong histogram: count %d, sum %v", got.Count, got.Sum)
	}
	for bound, want := range map[time.Duration]uint64{
		time.Microsecond: 2, 2500 * time.Nanosecond: 3, 500 * time.Microsecond: 3, time.Millisecond: 4, 100 * time.Millisecond: 4,
	} {
		if got.Below[bound] != want {
			t.Errorf("got %d durations up to %v, want %d", got.Below[bound], bound, want)
		}
	}
}

func TestTraffic(t *testing.T) {
	var traffic Traffic
	all := []int{0, 101, 204, 301, 429, 499, 502, 503, 999, -1}
	for i, status := range all {
		traffic.Answered(Origins()[i%3], status)
	}
	for class, want := range map[CodeClass][3]uint64{
		ClassCanceled: {1, 0, 0}, Class1xx: {0, 1, 0}, Class2xx: {0, 0, 1}, Class3xx: {1, 0, 0}, Class4xx: {0, 1, 1}, Class5xx: {2, 1, 1},
	} {
		sum := uint64(0)
		for i, from := range Origins() {
			if got := traffic.AnswersFrom(from, class); got != want[i] {
				t.Errorf("got %d answers of class %v from %v, want %d", got, class, from, want[i])
			}
			sum += want[i]
		}
		if got := traffic.Answers(class); got != sum {
			t.Errorf("got %d answers of class %v, want %d", got, class, sum)
		}
	}
	if got := traffic.ServiceFailures(); got != 3 {
		t.Errorf("got %d failures of the service, want 3", got)
	}
	traffic.UpstreamFailed(UpstreamTimeout)
	if got := traffic.UpstreamFailures(UpstreamTimeout); got != 1 {
		t.Errorf("got %d timeouts, want 1", got)
	}
}

func TestWords(t *testing.T) {
	for d := Sampled; d <= None; d++ {
		if got, ok := ParseDecisions(d.String()); got != d || !ok {
			t.Errorf("ParseDecisions(%q) = %v, %v", d.String(), got, ok)
		}
	}
	if _, ok := ParseDecisions("some"); ok {
		t.Error("ParseDecisions accepts an unknown name")
	}
}

// A rule keeps its counters by name, at any position. A guard with the old rules still
// increments the right counters.
func TestFollow(t *testing.T) {
	all := rules()
	r := New(Config{})
	defer r.Close()
	old := r.Follow(all)
	old.Observe(nil, answer(all, allow(0)))
	moved := []guard.Rule{all[1], all[0]}
	o := r.Follow(moved)
	o.Observe(nil, answer(moved, allow(1)))
	old.Observe(nil, answer(all, allow(0)))
	if got := r.count("product", headgate.Allow, headgate.WithinLimit); got != 3 {
		t.Errorf("product: got count %d, want 3", got)
	}
	if got := r.count("search", headgate.Allow, headgate.WithinLimit); got != 0 {
		t.Errorf("search: got count %d, want 0", got)
	}
	r.Follow(all[1:2])
	if n := len(r.Rules()); n != 1 {
		t.Errorf("got %d rules, want 1", n)
	}
}

// Rules that a guard refuses are never shown, and all counters stay.
func TestPrepare(t *testing.T) {
	all := rules()
	r := New(Config{})
	defer r.Close()
	o := r.Follow(all)
	o.Observe(nil, answer(all, allow(0)))
	shown := len(r.Rules())
	r.Prepare(all[1:2])
	o.Observe(nil, answer(all, allow(0)))
	if got := r.count("product", headgate.Allow, headgate.WithinLimit); got != 2 || len(r.Rules()) != shown {
		t.Errorf("product: got count %d among %d rules, want 2 among %d", got, len(r.Rules()), shown)
	}
	moved := []guard.Rule{all[1], all[0]}
	next, show := r.Prepare(moved)
	next.Observe(nil, answer(moved, allow(1)))
	show()
	if got := r.count("product", headgate.Allow, headgate.WithinLimit); got != 3 {
		t.Errorf("product: got count %d, want 3", got)
	}
}

func TestReloads(t *testing.T) {
	var r Reloads
	if !r.Good() || !r.Last().IsZero() {
		t.Error("the zero Reloads is not good")
	}
	if r.Started(time.Unix(500, 0)); !r.Last().Equal(time.Unix(500, 0)) {
		t.Errorf("wrong time of the start: %v", r.Last())
	}
	r.Failed()
	if r.Good() {
		t.Error("Good reports true after a failed reload")
	}
	at := time.Unix(1000, 0)
	r.Loaded(at)
	if loaded, failed := r.Counts(); loaded != 1 || failed != 1 || !r.Good() || !r.Last().Equal(at) {
		t.Errorf("wrong counts: %d loaded, %d failed, good %v, last %v", loaded, failed, r.Good(), r.Last())
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	all := rules()
	r := New(Config{Log: slog.New(slog.DiscardHandler), PerSecond: 1})
	o := r.Follow(all)
	defer r.Close()
	a := answer(all, allow(0), allow(0), deny(1, headgate.OverLimit))
	if n := testing.AllocsPerRun(1000, func() { o.Observe(nil, a) }); n != 0 {
		t.Errorf("Observe takes %v allocations, want 0", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	all := rules()
	for name, a := range map[string]*guard.Answer{
		"allow": answer(all, allow(0), allow(0)), "suppressed": answer(all, deny(0, headgate.OverLimit)),
	} {
		b.Run(name, func(b *testing.B) {
			r := New(Config{Log: slog.New(slog.DiscardHandler), PerSecond: 1})
			o := r.Follow(all)
			defer r.Close()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					o.Observe(nil, a)
				}
			})
		})
	}
}
