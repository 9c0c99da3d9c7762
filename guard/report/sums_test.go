package report

import (
	"fmt"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// summed adds up the counts of Rules and Stage by mode: the slow twin of Sums.
func summed(c *RuleCounts) (s Sums) {
	for _, n := range c.Modes {
		enforced := n.Mode == guard.Enforce
		switch {
		case n.Verdict == headgate.Deny && enforced:
			s.Refused += n.N
		case n.Verdict == headgate.Deny:
			s.WouldRefuse += n.N
			s.Passed += n.N
		default:
			s.Passed += n.N
			if enforced && n.Verdict == headgate.Wait {
				s.Waited += n.N
			}
			if enforced && n.Verdict == headgate.Allow && n.Reason == headgate.Degraded {
				s.Degraded += n.N
			}
		}
		if n.Verdict == headgate.Deny && enforced {
			switch n.Reason {
			case headgate.Banned:
				s.Banned += n.N
			case headgate.StoreFull, headgate.StoreUnavailable, headgate.SourceUnavailable, headgate.PlanMissing:
				s.Undecided += n.N
			default:
			}
		}
	}
	return s
}

// TestSums: each verdict and reason of each rule and stage is in the sums, in both modes.
func TestSums(t *testing.T) {
	all := rules()
	r := New(Config{})
	defer r.Close()
	c := guard.Config{Rules: all, FairShare: &guard.FairShare{}}
	o := r.FollowConfig(&c)
	count := 0
	for number := range all[:3] {
		for v := range headgate.Verdict(verdictCount) {
			for _, reason := range headgate.Reasons() {
				count++
				for range count % 7 {
					o.Observe(nil, answer(all, guard.Result{Number: number, Decision: headgate.Decision{Verdict: v, Reason: reason}}))
				}
			}
		}
	}
	share := c.FairShare.Rule()
	over := guard.Result{Rule: &share, Stage: guard.FairShareName, Decision: headgate.Decision{Verdict: headgate.Deny, Reason: headgate.OverShare}}
	o.Observe(nil, &guard.Answer{Results: []guard.Result{over}})

	counters, listed := r.Counters(), map[string]Sums{}
	for i := range counters.Len() {
		rule, stage := counters.At(i)
		listed[fmt.Sprint(rule.Name, stage)] = counters.Sums(i)
	}
	for _, counted := range r.Rules() {
		if got, want := listed[counted.Rule.Name+"false"], summed(&counted); got != want || want.Passed == 0 {
			t.Errorf("%s: %+v, want %+v", counted.Rule.Name, got, want)
		}
	}
	if got := listed["fair_sharetrue"]; got != (Sums{Refused: 1}) {
		t.Errorf("fair share: %+v", got)
	}
	if _, off := listed["oldfalse"]; !off || len(listed) != 4+2 {
		t.Errorf("the entries are %v", listed)
	}
	if r.Counters() != counters {
		t.Error("the counters differ without a reload")
	}
	if r.Follow(all); r.Counters() == counters {
		t.Error("the counters are the same after a reload")
	}
	if n := testing.AllocsPerRun(100, func() {
		for i := range counters.Len() {
			_ = counters.Sums(i)
		}
	}); n != 0 {
		t.Errorf("reading the sums takes %v allocations", n)
	}
	if (Counters{}).Len() != 0 || new(Report).Counters().Len() != 0 {
		t.Error("a Report without rules has counters")
	}
}

// TestTopKeyOfEach: each rule that was refused has the key that TopKeys lists first.
func TestTopKeyOfEach(t *testing.T) {
	r := New(Config{Keys: KeysPlain})
	defer r.Close()
	ask := closed(t, r)
	for i := range 500 {
		ask([]string{"/product", "/search"}[i%2], fmt.Sprint((i*i+i)%(3+i%40)))
	}
	names := r.KeyNames()
	got := r.TopKeyOfEach([]string{"product", "search", "none"}, names)
	if len(got) != 2 {
		t.Errorf("%d rules have keys", len(got))
	}
	for name, k := range got {
		if want, _ := r.TopKeysAs(name, 1, names); k.Refusals != want.Keys[0].Refusals || k.Rule != name || k.Refusals == 0 {
			t.Errorf("%s: %+v, want %+v", name, k, want.Keys[0])
		}
	}
	if r.TopKeyOfEach([]string{"product"}, nil) != nil || r.TopKeyOfEach(nil, names) != nil {
		t.Error("keys without names or without rules")
	}
}

// BenchmarkSums reads the counters of 1,000 rules.
func BenchmarkSums(b *testing.B) {
	r := New(Config{})
	defer r.Close()
	all := make([]guard.Rule, 1000)
	for i := range all {
		all[i].Name = fmt.Sprint(i)
	}
	r.Follow(all)
	counters := r.Counters()
	b.Run("sums", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for i := range counters.Len() {
				_ = counters.Sums(i)
			}
		}
	})
	b.Run("rules", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = r.Rules()
		}
	})
}
