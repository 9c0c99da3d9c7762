package report

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// Config says what a Report counts and logs.
type Config struct {
	// Rules are the guard's, in the guard's order.
	Rules []guard.Rule
	// Log gets the lines; nil logs nothing.
	Log *slog.Logger
	// Decisions says which decisions are logged; the zero value is Sampled.
	Decisions Decisions
	// PerSecond bounds the lines of Sampled; 0 is 10. All is not bounded.
	PerSecond int
	// Clock is for tests; nil is time.Now.
	Clock func() time.Time
}

// Report counts and logs decisions. It is safe for concurrent use.
type Report struct {
	// Traffic is counted by the front.
	Traffic Traffic

	rules     []guard.Rule
	reasons   []headgate.Reason
	counters  []atomic.Uint64
	stride    int // counters of one rule
	unmatched atomic.Uint64
	lines     *lines
}

// Every rule has a counter for each verdict and reason. Rules start on cache
// lines of their own, so that busy rules do not slow each other.
const (
	verdictCount = int(headgate.Deny) + 1
	lineWords    = 8
)

// New makes a Report. Close ends its log.
func New(c Config) *Report {
	r := &Report{rules: c.Rules, reasons: headgate.Reasons(), lines: startLines(c)}
	n := verdictCount * len(r.reasons)
	r.stride = (n + lineWords - 1) / lineWords * lineWords
	r.counters = make([]atomic.Uint64, len(c.Rules)*r.stride)
	return r
}

// Observe implements guard.Observer: each rule that spoke counts once, under the
// strictest of its limits.
func (r *Report) Observe(_ *headgate.Request, a *guard.Answer) {
	if len(a.Results) == 0 {
		r.unmatched.Add(1)
		return
	}
	for i := 0; i < len(a.Results); {
		last := &a.Results[i]
		for i++; i < len(a.Results) && a.Results[i].Number == last.Number; i++ {
			if stricter(&a.Results[i].Decision, &last.Decision) {
				last = &a.Results[i]
			}
		}
		r.count(last)
		r.lines.offer(last)
	}
}

// stricter orders the limits of one rule by how much they hold a caller back.
func stricter(d, than *headgate.Decision) bool {
	if d.Verdict != than.Verdict {
		return d.Verdict > than.Verdict
	}
	if d.Verdict == headgate.Allow {
		return d.Remaining < than.Remaining
	}
	return d.Reason == headgate.Never || than.Reason != headgate.Never && d.RetryAfter > than.RetryAfter
}

func (r *Report) count(result *guard.Result) {
	d := &result.Decision
	if result.Number >= len(r.rules) || int(d.Verdict) >= verdictCount || int(d.Reason) >= len(r.reasons) {
		return // A guard of other rules than ours: there is no place to count it.
	}
	r.counters[r.place(result.Number, d.Verdict, d.Reason)].Add(1)
}

func (r *Report) place(rule int, v headgate.Verdict, reason headgate.Reason) int {
	return rule*r.stride + int(v)*len(r.reasons) + int(reason)
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

// RuleCounts is what a rule has decided.
type RuleCounts struct {
	Rule *guard.Rule
	// Counts holds the counts above 0, and those that every rule has from its
	// start: allowed within the limit, and refused over it.
	Counts []Count
}

// Rules gives the counts of every rule that is not off, in the guard's order.
func (r *Report) Rules() []RuleCounts {
	all := make([]RuleCounts, 0, len(r.rules))
	for i := range r.rules {
		if r.rules[i].Mode != guard.Off {
			all = append(all, RuleCounts{Rule: &r.rules[i], Counts: r.counts(i)})
		}
	}
	return all
}

func (r *Report) counts(rule int) []Count {
	var all []Count
	for v := range headgate.Verdict(verdictCount) {
		for _, reason := range r.reasons {
			n := r.counters[r.place(rule, v, reason)].Load()
			usual := v == headgate.Allow && reason == headgate.WithinLimit || v == headgate.Deny && reason == headgate.OverLimit
			if n > 0 || usual {
				all = append(all, Count{v, reason, n})
			}
		}
	}
	return all
}

// Unmatched gives how many requests no rule spoke for.
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
