package guard

import "github.com/headgate/headgate"

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
	// Shared reports that the request lacked a value of the rule's key and counts
	// under the one key that all such requests share.
	Shared bool
	// KeyHash stands for the key in logs: it tells keys apart and shows none.
	KeyHash  uint64
	Decision headgate.Decision
}

// Enforced reports whether the result counts for the verdict.
func (r *Result) Enforced() bool { return r.Rule.Mode == Enforce }

// Answer is what a guard says of a request. It is filled by Guard.Decide and may
// be used again; nothing in it outlives the next Decide.
type Answer struct {
	// Verdict is the strictest of the enforced results.
	Verdict headgate.Verdict
	// Results are the limits of the rules that match, in the order of the rules.
	Results []Result
	// closest is the index of the result that the caller is told of, or -1.
	closest int

	// The working memory of a decision.
	matched   []int
	keys      []byte
	ops       []headgate.Op
	decisions []headgate.Decision
	receipts  []headgate.Receipt
}

// Closest gives the enforced result that names the verdict: the refusal with the
// longest RetryAfter, else the longest wait, else the limit with the least part
// of it remaining. It is nil when no enforced rule matches.
func (a *Answer) Closest() *Result {
	if a.closest < 0 {
		return nil
	}
	return &a.Results[a.closest]
}
