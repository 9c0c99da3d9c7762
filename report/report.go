package report

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// Config says what a Report logs.
type Config struct {
	// Log gets the lines; nil logs nothing.
	Log *slog.Logger
	// Decisions says which decisions are logged; the zero value is Sampled.
	Decisions Decisions
	// PerSecond bounds the lines of Sampled; 0 is 10. All is not bounded.
	PerSecond int
	// Keys says how logs and TopKeys name keys; the zero value is KeysHash.
	Keys Keys
	// KeysSecret is the secret of KeysHash, so that several processes name a key alike;
	// nil is a random one.
	KeysSecret []byte
	// Clock is for tests; nil is time.Now.
	Clock func() time.Time
}

// Report counts and logs decisions. It is safe for concurrent use.
type Report struct {
	// Traffic is counted by the front, and Reloads by whoever reloads.
	Traffic Traffic
	Reloads Reloads

	current   atomic.Pointer[view]
	unmatched atomic.Uint64
	abandoned atomic.Uint64
	lines     *lines
	names     *rule.KeyNames // nil names no key
	top       *top           // nil counts no keys
	following sync.Mutex
}

// view is a report of one list of rules, and of fair share: what a guard is observed
// with between two reloads.
type view struct {
	report *Report
	rules  []guard.Rule
	blocks []*block
	stages []stage // without rules: fair share, then those of guard.Config.Stages
}

// stage counts what a stage without rules decides, under the rule that describes it.
type stage struct {
	rule   guard.Rule
	counts *block
}

// usualRefusalsTable holds, by the name of a stage, the refusals that are shown from the
// start, with 0 too.
var usualRefusalsTable = map[string][]headgate.Reason{
	guard.FairShareName: {headgate.OverShare, headgate.AnonymousClient},
}

// block holds the counters of a rule: one for each verdict and reason, and one for
// each fallback. Rules have cache lines of their own, so that busy rules do not slow
// each other.
type block struct {
	counts    [verdictCount * headgate.ReasonCount]atomic.Uint64
	fallbacks [fallbackCount]atomic.Uint64
	_         [lineBytes]byte
}

const (
	verdictCount  = int(headgate.Deny) + 1
	fallbackCount = int(guard.FallbackLocal) + 1
	lineBytes     = 64
)

// New makes a Report. Close ends its log.
func New(c Config) *Report {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	r := &Report{names: c.Keys.names(c.KeysSecret)}
	r.lines = startLines(c, r.names)
	if r.names != nil {
		r.top = newTop(c.Clock)
	}
	r.current.Store(&view{report: r})
	return r
}

// view gives the rules of this moment. A Report that New did not make counts, and
// logs nothing.
func (r *Report) view() *view {
	if v := r.current.Load(); v != nil {
		return v
	}
	return &view{report: r}
}

// Of gives the Report that a guard reports to, as open.Guard makes it; nil
// when it reports to none.
func Of(g *guard.Guard) *Report {
	if v, ok := g.Observer().(*view); ok {
		return v.report
	}
	return nil
}

// Follow gives the observer of a guard of these rules, and shows them from now on.
// The counters of a rule go on under its name; those of rules that are gone are
// forgotten. For a guard with fair share too, see FollowConfig.
func (r *Report) Follow(rules []guard.Rule) guard.Observer {
	return r.FollowConfig(&guard.Config{Rules: rules})
}

// Prepare is Follow in two steps, for a guard that may turn the rules down: what is
// shown, and counted, stays as it is until show is called. Who prepares again
// before that gives up the first.
func (r *Report) Prepare(rules []guard.Rule) (observer guard.Observer, show func()) {
	return r.PrepareConfig(&guard.Config{Rules: rules})
}

// FollowConfig is Follow for a guard of c's rules and its fair share. The counters of
// fair share go on for as long as there is fair share, in whatever mode.
func (r *Report) FollowConfig(c *guard.Config) guard.Observer {
	observer, show := r.PrepareConfig(c)
	show()
	return observer
}

// PrepareConfig is to FollowConfig what Prepare is to Follow.
func (r *Report) PrepareConfig(c *guard.Config) (observer guard.Observer, show func()) {
	r.following.Lock()
	defer r.following.Unlock()
	old := r.view()
	known := make(map[string]*block, len(old.rules))
	for i := range old.rules {
		known[old.rules[i].Name] = old.blocks[i]
	}
	next := &view{report: r, rules: slices.Clone(c.Rules), blocks: make([]*block, len(c.Rules))}
	if c.FairShare != nil {
		next.addStage(c.FairShare.Rule(), old)
	}
	for _, s := range c.Stages {
		next.addStage(s.Rule(), old)
	}
	for i := range c.Rules {
		b, found := known[c.Rules[i].Name]
		if !found {
			b = new(block)
		}
		next.blocks[i] = b
	}
	return next, func() { r.current.Store(next) }
}

// addStage counts for a stage without rules, and goes on with the counters of old.
func (v *view) addStage(r guard.Rule, old *view) {
	s := old.stage(r.Name)
	if s == nil {
		s = &stage{counts: new(block)}
	}
	v.stages = append(v.stages, stage{r, s.counts})
}

// stage finds the stage of a name, or nil.
func (v *view) stage(name string) *stage {
	for i := range v.stages {
		if v.stages[i].rule.Name == name {
			return &v.stages[i]
		}
	}
	return nil
}

// Observe implements guard.Observer: each rule that spoke counts once, under the
// strictest of its limits, and so does fair share. What was decided for a caller that had left counts apart:
// it says nothing of the rules, nor of the store.
func (v *view) Observe(_ *headgate.Request, a *guard.Answer) {
	switch {
	case len(a.Results) == 0:
		v.report.unmatched.Add(1)
		return
	case a.StoreError != nil && errors.Is(a.StoreError, guard.ErrCallerGone):
		v.report.abandoned.Add(1)
		return
	}
	for i := 0; i < len(a.Results); {
		last := &a.Results[i]
		for i++; i < len(a.Results) && a.Results[i].Rule == last.Rule; i++ {
			if stricter(&a.Results[i].Decision, &last.Decision) {
				last = &a.Results[i]
			}
		}
		v.count(last)
		v.report.lines.offer(last)
		if last.Decision.Verdict == headgate.Deny {
			v.report.top.refused(last)
		}
	}
}

// KeyNames gives what names keys as this Report does; nil names none.
func (r *Report) KeyNames() *rule.KeyNames { return r.names }

// stricter orders the limits of one rule by how much they hold a caller back.
func stricter(d, than *headgate.Decision) bool {
	switch {
	case d.Verdict != than.Verdict:
		return d.Verdict > than.Verdict
	case d.Verdict == headgate.Allow && d.Reason != than.Reason:
		return d.Reason > than.Reason // Within, soft, degraded stand in this order.
	case d.Verdict == headgate.Allow:
		return d.Remaining < than.Remaining
	default:
		return d.Reason == headgate.Never || than.Reason != headgate.Never && d.RetryAfter > than.RetryAfter
	}
}

func (v *view) count(result *guard.Result) {
	d := &result.Decision
	b := v.block(result)
	if b == nil || int(d.Verdict) >= verdictCount || int(d.Reason) >= headgate.ReasonCount {
		return // A guard of other rules than ours: there is no place to count it.
	}
	b.counter(d.Verdict, d.Reason).Add(1)
	if result.Fallback && int(result.Rule.Fallback) < fallbackCount {
		b.fallbacks[result.Rule.Fallback].Add(1)
	}
}

// block finds the counters of what decided; nil when there are none.
func (v *view) block(result *guard.Result) *block {
	if result.Stage == "" {
		if uint(result.Number) < uint(len(v.blocks)) {
			return v.blocks[result.Number]
		}
		return nil
	}
	if s := v.stage(result.Stage); s != nil {
		return s.counts
	}
	return nil
}

func (b *block) counter(v headgate.Verdict, reason headgate.Reason) *atomic.Uint64 {
	return &b.counts[int(v)*headgate.ReasonCount+int(reason)]
}

// Close writes the log lines that are still queued and ends the log. Decisions
// after it are counted and not logged.
func (r *Report) Close() { r.lines.close() }

// Count is how often a rule gave a verdict for a reason.
type Count struct {
	Verdict headgate.Verdict
	Reason  headgate.Reason
	N       uint64
}

// RuleCounts is what a rule, or a stage without rules, has decided.
type RuleCounts struct {
	Rule *guard.Rule
	// Counts holds the counts above 0, and those that every rule has from its
	// start: allowed within the limit, and refused over it; fair share those that are
	// refused over their share, and as anonymous.
	Counts []Count
	// Fallbacks holds how many of them were left to a fallback, because the store could
	// not answer: those above 0, and that of the fallback that the rule has.
	Fallbacks []FallbackCount
}

// FallbackCount is how often a fallback decided for a rule.
type FallbackCount struct {
	Fallback guard.Fallback
	N        uint64
}

// Rules gives the counts of every rule that is not off, in the guard's order.
func (r *Report) Rules() []RuleCounts {
	v := r.view()
	all := make([]RuleCounts, 0, len(v.rules))
	for i := range v.rules {
		if v.rules[i].Mode != guard.Off {
			all = append(all, RuleCounts{
				Rule: &v.rules[i], Counts: v.blocks[i].list(headgate.OverLimit),
				Fallbacks: v.blocks[i].listFallbacks(v.rules[i].Fallback),
			})
		}
	}
	return all
}

// Stage gives the counts of a stage without rules, guard.FairShareName for example,
// under the rule that describes it; it has no Fallbacks. It reports false where there is
// no such stage, and while the stage is off.
func (r *Report) Stage(name string) (RuleCounts, bool) {
	s := r.view().stage(name)
	if s == nil || s.rule.Mode == guard.Off {
		return RuleCounts{}, false
	}
	return RuleCounts{Rule: &s.rule, Counts: s.counts.list(usualRefusalsTable[name]...)}, true
}

// Stages gives the counts of all stages without rules, in the order of the admission.
func (r *Report) Stages() []RuleCounts {
	var all []RuleCounts
	for _, s := range r.view().stages {
		if counted, on := r.Stage(s.rule.Name); on {
			all = append(all, counted)
		}
	}
	return all
}

// list gives the counts above 0 and those that are usual: allowed within the limit,
// and refused for some reasons.
func (b *block) list(refusals ...headgate.Reason) []Count {
	var all []Count
	for v := range headgate.Verdict(verdictCount) {
		for _, reason := range headgate.Reasons() {
			n := b.counter(v, reason).Load()
			usual := v == headgate.Allow && reason == headgate.WithinLimit || v == headgate.Deny && slices.Contains(refusals, reason)
			if n > 0 || usual {
				all = append(all, Count{v, reason, n})
			}
		}
	}
	return all
}

func (b *block) listFallbacks(own guard.Fallback) []FallbackCount {
	var all []FallbackCount
	for i, f := range guard.Fallbacks() {
		if n := b.fallbacks[i].Load(); n > 0 || f == own {
			all = append(all, FallbackCount{f, n})
		}
	}
	return all
}

// Abandoned gives how many requests ended before the store had answered, because
// their callers left. They count nowhere else.
func (r *Report) Abandoned() uint64 { return r.abandoned.Load() }

// Unmatched gives how many requests no rule spoke for, nor fair share.
func (r *Report) Unmatched() uint64 { return r.unmatched.Load() }

// AlgorithmOf names the algorithm of a rule's limits.
func AlgorithmOf(r *guard.Rule) string {
	if len(r.Policies) == 0 {
		return ""
	}
	return r.Policies[0].Algorithm.String()
}

// LimitsOf writes a rule's limits as its configuration does: "500/2s, 2000/10s".
func LimitsOf(r *guard.Rule) string {
	limits := make([]string, len(r.Policies))
	for i := range r.Policies {
		limits[i] = r.Policies[i].Limit.String()
	}
	return strings.Join(limits, ", ")
}
