package report

import (
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// Counters are the counters of the rules and stages that a Report shows at one time. Two Counters of one Report are equal (==) as long
// as no reload came between. Reading them allocates nothing, so a sampler can do so each second for many thousands of rules.
//
// The entries are the stages without rules in the order of admission, and then the rules in the guard's order, with those of mode off.
type Counters struct{ of *view }

// Counters returns the present counters.
func (r *Report) Counters() Counters { return Counters{r.view()} }

// Len is the number of entries.
func (c Counters) Len() int {
	if c.of == nil {
		return 0
	}
	return len(c.of.stages) + len(c.of.rules)
}

// At describes an entry. stage is set for a stage without rules.
func (c Counters) At(i int) (rule *guard.Rule, stage bool) {
	if i < len(c.of.stages) {
		return &c.of.stages[i].rule, true
	}
	return &c.of.rules[i-len(c.of.stages)], false
}

// Sums reads the counters of an entry. Concurrent decisions may be included only in part.
func (c Counters) Sums(i int) Sums {
	if i < len(c.of.stages) {
		return c.of.stages[i].counts.sums()
	}
	return c.of.blocks[i-len(c.of.stages)].sums()
}

// Sums are the decisions of a rule or a stage, since its name is known to the Report.
type Sums struct {
	// Passed let the request pass, also after a wait, with reduced service, or in shadow. Refused did not.
	Passed, Refused uint64
	// Waited and Degraded are parts of Passed. WouldRefuse is the part of Passed that only mode shadow let pass.
	Waited, Degraded, WouldRefuse uint64
	// Banned and Undecided are parts of Refused: keys that are banned, and refusals because the store or the source did not answer or
	// has no capacity.
	Banned, Undecided uint64
}

// sums adds up the counters.
func (b *block) sums() (s Sums) {
	enforced, shadow := b.counts[:modeCounts], b.counts[modeCounts:]
	s.Waited = total(enforced, headgate.Wait)
	s.Refused = total(enforced, headgate.Deny)
	s.WouldRefuse = total(shadow, headgate.Deny)
	s.Passed = total(enforced, headgate.Allow) + s.Waited + total(shadow, headgate.Allow) + total(shadow, headgate.Wait) + s.WouldRefuse
	s.Degraded = one(enforced, headgate.Allow, headgate.Degraded)
	if s.Refused > 0 {
		s.Banned = one(enforced, headgate.Deny, headgate.Banned)
		for _, reason := range [...]headgate.Reason{
			headgate.StoreFull, headgate.StoreUnavailable, headgate.SourceUnavailable, headgate.PlanMissing,
		} {
			s.Undecided += one(enforced, headgate.Deny, reason)
		}
	}
	return s
}

// total adds up the counts of a verdict in one mode.
func total(counts []atomic.Uint64, v headgate.Verdict) (n uint64) {
	of := counts[int(v)*headgate.ReasonCount:][:headgate.ReasonCount]
	for i := range of {
		n += of[i].Load()
	}
	return n
}

// one is the count of a verdict and a reason in one mode.
func one(counts []atomic.Uint64, v headgate.Verdict, reason headgate.Reason) uint64 {
	return counts[int(v)*headgate.ReasonCount+int(reason)].Load()
}
