package report

import (
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// Config configures the log of a Report.
type Config struct {
	// Log receives the lines. nil logs nothing.
	Log *slog.Logger
	// Decisions says which decisions are logged. The zero value is Sampled.
	Decisions Decisions
	// PerSecond limits the lines of Sampled. 0 means 10. All has no limit.
	PerSecond int
	// Keys is the form of keys in logs and TopKeys. The zero value is KeysHash.
	Keys Keys
	// KeysSecret is the secret of KeysHash. Processes with the same secret use the same
	// names for keys. nil means a random secret.
	KeysSecret []byte
	// Instance names this process in the lines. "" leaves it out.
	Instance string
	// Clock is for tests. nil means time.Now.
	Clock func() time.Time
}

// Report counts and logs decisions. Report is safe for concurrent use.
type Report struct {
	// The front updates Traffic. The code that reloads the configuration updates Reloads.
	Traffic Traffic
	Reloads Reloads

	current   atomic.Pointer[view]
	unmatched atomic.Uint64
	abandoned atomic.Uint64
	logging   atomic.Pointer[logging]
	refusals  atomic.Pointer[OnRefusal]

	storeClock storeClock
	warned     warned
	following  sync.Mutex

	configuring sync.Mutex // guards secret, and is held while logging is replaced
	secret      []byte     // used without Config.KeysSecret; nil before its first use
}

// logging is what a Config describes. Configure replaces it.
type logging struct {
	log   *slog.Logger // nil logs nothing
	clock func() time.Time
	lines *lines         // nil logs nothing
	names *rule.KeyNames // nil names no key
	top   *top           // nil counts no keys
}

// view has the counters for one list of rules and for fair share. view observes a guard
// between two reloads.
type view struct {
	report *Report
	rules  []guard.Rule
	blocks []*block
	stages []stage // stages without rules: fair share, then guard.Config.Stages
}

// stage counts the decisions of a stage without rules. The rule in a stage only describes the stage.
type stage struct {
	rule   guard.Rule
	counts *block
}

// usualRefusalsTable has, for each stage, the refusals that are shown from the start,
// also with count 0.
var usualRefusalsTable = map[string][]headgate.Reason{
	guard.FairShareName: {headgate.OverShare, headgate.AnonymousClient},
	guard.SourceName:    {headgate.SourceUnavailable},
}

// block has the counters of a rule: one for each verdict and reason, and one for each
// fallback. Each rule has its own cache lines, so that busy rules do not slow down each
// other.
type block struct {
	counts    [2 * modeCounts]atomic.Uint64 // those with mode enforce, then those in shadow
	fallbacks [fallbackCount]atomic.Uint64
	aboveSoft atomic.Uint64 // decisions above the soft limit of a quota
	metered   atomic.Uint64 // units
	unstated  unstated
	_         [lineBytes]byte
}

const (
	verdictCount  = int(headgate.Deny) + 1
	modeCounts    = verdictCount * headgate.ReasonCount
	fallbackCount = int(guard.FallbackError) + 1
	lineBytes     = 64
)

// New returns a Report. Close ends its log.
func New(c Config) *Report {
	r := new(Report)
	r.Configure(c)
	r.current.Store(&view{report: r})
	return r
}

// Configure replaces the Config. Counters stay, and the counts of TopKeys too, unless a Config with KeysOff came
// between. Without KeysSecret, the random secret of the Report stays.
func (r *Report) Configure(c Config) {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	r.configuring.Lock()
	defer r.configuring.Unlock()
	if c.Keys == KeysHash && len(c.KeysSecret) == 0 {
		if r.secret == nil {
			r.secret = newSecret()
		}
		c.KeysSecret = r.secret
	}
	former := r.logged()
	next := &logging{log: c.Log, clock: c.Clock, names: c.Keys.names(c.KeysSecret)}
	if next.names != nil {
		if next.top = former.top; next.top == nil {
			next.top = newTop(c.Clock)
		}
	}
	next.lines = startLines(c, next.names, former.lines)
	r.logging.Store(next)
}

// logged returns the logging in effect. A zero Report logs nothing.
func (r *Report) logged() logging {
	if l := r.logging.Load(); l != nil {
		return *l
	}
	return logging{}
}

// view returns the current view. A zero Report counts but logs nothing.
func (r *Report) view() *view {
	if v := r.current.Load(); v != nil {
		return v
	}
	return &view{report: r}
}

// Of returns the Report that a guard reports to, for example from open.Guard. It
// returns nil for a guard without a Report.
func Of(g *guard.Guard) *Report {
	if v, ok := g.Observer().(*view); ok {
		return v.report
	}
	return nil
}

// Follow returns the observer for a guard with these rules, and shows the rules from
// now on. A rule keeps its counters by name. Counters of removed rules are deleted. For
// a guard with fair share, use FollowConfig.
func (r *Report) Follow(rules []guard.Rule) guard.Observer {
	return r.FollowConfig(&guard.Config{Rules: rules})
}

// Prepare is Follow in two steps, for a guard that may refuse the rules. The shown
// rules and counters change only when the caller calls show. A second Prepare before
// show cancels the first.
func (r *Report) Prepare(rules []guard.Rule) (observer guard.Observer, show func()) {
	return r.PrepareConfig(&guard.Config{Rules: rules})
}

// FollowConfig is Follow for a guard with c's rules and fair share. The counters of fair
// share survive changes of its mode.
func (r *Report) FollowConfig(c *guard.Config) guard.Observer {
	observer, show := r.PrepareConfig(c)
	show()
	return observer
}

// PrepareConfig is FollowConfig in two steps, like Prepare.
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
	if c.WithoutState || old.stage(guard.SourceName) != nil { // Its counts stay when the rules are known.
		next.addStage(guard.SourceRule(), old)
	}
	next.addStage(guard.SentRule(), old)
	for i := range c.Rules {
		b, found := known[c.Rules[i].Name]
		if !found {
			b = new(block)
		}
		next.blocks[i] = b
	}
	return next, func() { r.current.Store(next) }
}

// addStage adds a stage without rules and keeps its counters from old.
func (v *view) addStage(r guard.Rule, old *view) {
	s := old.stage(r.Name)
	if s == nil {
		s = &stage{counts: new(block)}
	}
	v.stages = append(v.stages, stage{r, s.counts})
}

// stage returns the stage with the name, or nil.
func (v *view) stage(name string) *stage {
	for i := range v.stages {
		if v.stages[i].rule.Name == name {
			return &v.stages[i]
		}
	}
	return nil
}

// Observe implements guard.Observer. Each rule that matched counts once, by its
// strictest limit. Fair share counts once too. A decision for a caller that has left
// counts only as abandoned, because it says nothing about the rules or the store.
func (v *view) Observe(req *headgate.Request, a *guard.Answer) {
	switch {
	case len(a.Results) == 0:
		v.report.unmatched.Add(1)
		return
	case a.StoreError != nil && errors.Is(a.StoreError, guard.ErrCallerGone):
		v.report.abandoned.Add(1)
		return
	}
	about, logged := subjectOf(req, a), v.report.logged()
	if a.StoreError != nil {
		v.report.storeClock.observe(a.StoreError, logged)
	}
	for results := a.Results; len(results) > 0; {
		var last *guard.Result
		all := results
		last, results = strictest(results)
		v.count(last)
		if last.Rule.Quota != "" {
			v.countQuota(about, all[:len(all)-len(results)])
		}
		if last.Rule.TrialOf != "" {
			continue
		}
		verdict := last.Decision.Verdict
		// A decision server answers at once: it refuses a request that would have to wait.
		refused := verdict == headgate.Deny || verdict == headgate.Wait && about.code != ""
		logged.lines.offer(last, refused, about)
		if refused {
			logged.top.refused(last)
			v.report.tell(req, a, last)
		}
	}
}

// OnRefusal gets each refusal: r is the strictest result of a rule or a stage that refuses, or that would without shadow. It must not
// block, and must not keep its arguments. req is nil for a decision without a request.
type OnRefusal func(req *headgate.Request, a *guard.Answer, r *guard.Result)

// SetOnRefusal sets what gets the refusals, in place of the one before; nil for nothing. Allowed requests cost nothing more.
func (r *Report) SetOnRefusal(f OnRefusal) {
	if f == nil {
		r.refusals.Store(nil)
		return
	}
	r.refusals.Store(&f)
}

func (r *Report) tell(req *headgate.Request, a *guard.Answer, last *guard.Result) {
	if f := r.refusals.Load(); f != nil {
		(*f)(req, a, last)
	}
}

// strictest returns the strictest of the first results that have one rule, and the results of other
// rules.
func strictest(results []guard.Result) (last *guard.Result, others []guard.Result) {
	last = &results[0]
	n := 1
	for ; n < len(results) && results[n].Rule == last.Rule; n++ {
		if stricter(&results[n].Decision, &last.Decision) {
			last = &results[n]
		}
	}
	return last, results[n:]
}

// KeyNames returns the formatter of keys that this Report uses, or nil for KeysOff.
func (r *Report) KeyNames() *rule.KeyNames { return r.logged().names }

// stricter reports whether d restricts the caller more than the other decision of the
// same rule.
func stricter(d, than *headgate.Decision) bool {
	switch {
	case d.Verdict != than.Verdict:
		return d.Verdict > than.Verdict
	case d.Verdict == headgate.Allow && d.Reason != than.Reason:
		return d.Reason > than.Reason // The constants of WithinLimit, SoftLimit and Degraded have this order.
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
		return // The guard has a rule that this view does not know, so no counter exists.
	}
	b.counter(v.mode(result), d.Verdict, d.Reason).Add(1)
	if result.Fallback {
		b.fallbacks[result.Rule.Fallback].Add(1)
	}
}

// block returns the counters for a result, or nil without counters.
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

// Close writes the queued log lines and ends the log. Later decisions are counted but
// not logged.
func (r *Report) Close() { r.logged().lines.close() }

// Count is the number of decisions of a rule with one verdict and reason.
type Count struct {
	Verdict headgate.Verdict
	Reason  headgate.Reason
	N       uint64
}

// RuleCounts has the counts of a rule, or of a stage without rules.
type RuleCounts struct {
	Rule *guard.Rule
	// Counts has the counts above 0 and the usual counts. A rule always has the counts for
	// within_limit and over_limit. Fair share always has the counts for within_limit,
	// over_share and anonymous_client.
	Counts []Count
	// Modes divides Counts by the mode that the rule had then. The usual counts are those of its present mode.
	Modes []ModeCount
	// AboveSoft counts the decisions above the soft limit of a quota. Metered counts the units beyond the
	// included units of plans, when they were taken: units that come back later stay in it.
	AboveSoft, Metered uint64
	// Fallbacks has the number of decisions by each fallback because the store did not
	// answer. Fallbacks has the counts above 0, and the count of the rule's own fallback.
	Fallbacks []FallbackCount
}

// FallbackCount is the number of decisions of a rule by one fallback.
type FallbackCount struct {
	Fallback guard.Fallback
	N        uint64
}

// Rules returns the counts of every rule that is not off, in the guard's order.
func (r *Report) Rules() []RuleCounts {
	v := r.view()
	all := make([]RuleCounts, 0, len(v.rules))
	for i := range v.rules {
		if v.rules[i].Mode != guard.Off {
			all = append(all, RuleCounts{
				Rule: &v.rules[i], Counts: v.blocks[i].list(headgate.OverLimit),
				Modes:     v.blocks[i].modes(v.rules[i].Mode, headgate.OverLimit),
				Fallbacks: v.blocks[i].listFallbacks(v.rules[i].Fallback),
				AboveSoft: v.blocks[i].aboveSoft.Load(), Metered: v.blocks[i].metered.Load(),
			})
		}
	}
	return all
}

// Stage returns the counts of a stage without rules, for example guard.FairShareName.
// The result has the rule that describes the stage, and no Fallbacks. Stage reports
// false for an unknown stage and for a stage that is off.
func (r *Report) Stage(name string) (RuleCounts, bool) {
	s := r.view().stage(name)
	if s == nil || s.rule.Mode == guard.Off {
		return RuleCounts{}, false
	}
	usual := usualRefusalsTable[name]
	return RuleCounts{Rule: &s.rule, Counts: s.counts.list(usual...), Modes: s.counts.modes(s.rule.Mode, usual...)}, true
}

// Stages returns the counts of all stages without rules, in the order of admission. Buckets that clients send are there after
// their first decision.
func (r *Report) Stages() []RuleCounts {
	var all []RuleCounts
	for _, s := range r.view().stages {
		if s.rule.Name == guard.SentName && s.counts.unused() {
			continue
		}
		if counted, on := r.Stage(s.rule.Name); on {
			all = append(all, counted)
		}
	}
	return all
}

// list returns the counts above 0 and the usual counts: within_limit and the given
// refusals.
func (b *block) list(refusals ...headgate.Reason) []Count {
	var all []Count
	for v := range headgate.Verdict(verdictCount) {
		for _, reason := range headgate.Reasons() {
			n := b.counter(guard.Enforce, v, reason).Load() + b.counter(guard.Shadow, v, reason).Load()
			if n > 0 || isUsual(v, reason, refusals) {
				all = append(all, Count{v, reason, n})
			}
		}
	}
	return all
}

func isUsual(v headgate.Verdict, reason headgate.Reason, refusals []headgate.Reason) bool {
	return v == headgate.Allow && reason == headgate.WithinLimit || v == headgate.Deny && slices.Contains(refusals, reason)
}

func (b *block) unused() bool {
	for i := range b.counts {
		if b.counts[i].Load() > 0 {
			return false
		}
	}
	return true
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

// Abandoned returns the number of requests whose caller left before the store answered.
// Abandoned requests count nowhere else.
func (r *Report) Abandoned() uint64 { return r.abandoned.Load() }

// Unmatched returns the number of requests that matched no rule and no fair share.
func (r *Report) Unmatched() uint64 { return r.unmatched.Load() }

// AlgorithmOf returns the name of the algorithm of a rule's limits.
func AlgorithmOf(r *guard.Rule) string {
	switch {
	case r.Lease.Resource != "":
		return headgate.TokenBucket.String()
	case len(r.Policies) == 0:
		return ""
	}
	return r.Policies[0].Algorithm.String()
}

// LimitsOf formats a rule's limits like the configuration: "500/2s, 2000/10s, 20 in flight".
func LimitsOf(r *guard.Rule) string {
	limits := make([]string, 0, len(r.Policies)+1)
	for i := range r.Policies {
		limits = append(limits, r.Policies[i].Limit.String())
	}
	if r.Quota != "" {
		limits = append(limits, "quota "+r.Quota)
	}
	if r.Lease.Resource != "" {
		limits = append(limits, "lease "+r.Lease.Resource)
	}
	if r.InFlight > 0 {
		limits = append(limits, strconv.FormatInt(r.InFlight, 10)+" in flight")
	}
	return strings.Join(limits, ", ")
}
