package guard

import (
	"math"
	"time"

	"github.com/headgate/headgate"
)

// Result is what one limit of one rule decided.
type Result struct {
	// Rule is the rule, and Window the number of the limit among its Policies.
	Rule   *Rule
	Window int
	// Policy names the limit to the caller: the rule's name, with the period when
	// the rule has several limits ("product", "product-10s").
	Policy string
	// Number is the position of the rule in the guard's Config.
	Number int
	// Shared reports that the request lacked a part of the rule's key, and counts
	// with all others that lack it.
	Shared bool
	// KeyHash stands for the key in logs: it tells keys apart and shows none.
	KeyHash  uint64
	Decision headgate.Decision
}

// Enforced reports whether the result counts for the verdict.
func (r *Result) Enforced() bool { return r.Rule.Mode == Enforce }

// Answer is what a guard says of a request. It is filled by Guard.Decide and may
// be used again; nothing in it outlives the next Decide. The zero Answer is ready.
type Answer struct {
	// Verdict is the strictest of the enforced results; Allow when there is none.
	Verdict headgate.Verdict
	// Results are the limits of the rules that match: those of the enforced rules
	// in the order of the rules, then those of the shadow rules.
	Results []Result
	// StoreError is why the store could not answer, and the fallbacks did.
	StoreError error

	closest   int
	group     uint8
	matched   []int
	keys      []byte
	ops       []headgate.Op
	decisions []headgate.Decision
	receipts  []headgate.Receipt
}

func (a *Answer) reset() {
	a.Verdict, a.Results, a.StoreError = headgate.Allow, a.Results[:0], nil
	a.closest, a.group = -1, 0
	a.keys, a.ops = a.keys[:0], a.ops[:0]
}

// Closest gives the enforced result that names the verdict: the refusal with the
// longest time to wait, else the longest wait, else the limit of which the least
// part remains. It is nil when no enforced rule matches.
func (a *Answer) Closest() *Result {
	if a.closest < 0 || a.closest >= len(a.Results) {
		return nil
	}
	return &a.Results[a.closest]
}

// RetryAfter gives the time until the request may go: its wait, or when a refused
// one can pass. It is 0 for Allow, and for a refusal that no wait mends.
func (a *Answer) RetryAfter() time.Duration {
	if r := a.Closest(); r != nil {
		return r.Decision.RetryAfter
	}
	return 0
}

// judge finds the verdict and the result that names it.
func (a *Answer) judge() {
	for i := range a.Results {
		r := &a.Results[i]
		if !r.Enforced() {
			continue
		}
		if r.Decision.Verdict > a.Verdict || a.closest < 0 {
			a.Verdict, a.closest = max(a.Verdict, r.Decision.Verdict), i
			continue
		}
		if r.Decision.Verdict == a.Verdict && closer(&r.Decision, &a.Results[a.closest].Decision) {
			a.closest = i
		}
	}
}

// closer orders two decisions of one verdict by how much they hold a caller back.
func closer(d, than *headgate.Decision) bool {
	if d.Verdict == headgate.Allow {
		return left(d) < left(than)
	}
	return patience(d) > patience(than)
}

// left is the part of the limit that remains.
func left(d *headgate.Decision) float64 {
	if d.Limit == 0 {
		return 1
	}
	return float64(d.Remaining) / float64(d.Limit)
}

func patience(d *headgate.Decision) time.Duration {
	if d.Reason == headgate.Never {
		return math.MaxInt64
	}
	return d.RetryAfter
}
