package guard

import (
	"hash/maphash"
	"math"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/internal/domain"
	"github.com/headgate/headgate/rule"
)

// Result is the decision of one limit of a rule, of a rule's ban, of fair share or of a stage.
type Result struct {
	// Rule is the rule. Window is the number of the limit among its Policies, or among those of
	// the matching override; it is 0 for a ban and a hard limit. Fair share and stages have a
	// Rule of their own: FairShare.Rule, Stage.Rule.
	Rule   *Rule
	Window int
	// Policy names the limit to the caller: the rule's name, followed by the period if the rule
	// has several limits ("product", "product-10s"), or by -ban or -hard.
	Policy string
	// Limit is the limit that decided. For fair share, it is the client's share of the cycle.
	Limit headgate.Limit
	// Stage names the deciding step: "" for the rules, FairShareName, SentName, SourceName, or the name of a Stage of
	// the Config.
	Stage string
	// Number is the position of the rule in Config.Rules; 0 for fair share and stages.
	Number int
	// Shared reports that the request lacks a part of the rule's key. All such requests are
	// counted together.
	Shared bool
	// Fallback reports that the store did not answer, and the rule's fallback decided. Under
	// FallbackLocal, Limit and Decision are those of this instance's part.
	Fallback bool
	// Recalled reports that the memory of refusals decided, without a query to the store.
	Recalled bool
	// Decision is the store's decision after the rule's soft limit and action. A request that
	// they let pass has Allow, with the reason SoftLimit, Degraded or Metered.
	Decision headgate.Decision
	// Beyond is the number of the request's units that are beyond the included units of a quota.
	// AboveSoft reports that the counted units exceed the soft limit of a quota, also if Decision has another reason.
	// Both are zero for a refusal.
	Beyond    int64
	AboveSoft bool

	// Stated says which limit decided under a rule with LimitsFrom.
	Stated Stated

	spread uint8 // what Spread has drawn, in seconds; 0 before

	window *window
	from   *prepared
	key    string // valid until the next Decide
	// resource is the name of the resource of a rule with a lease. It is valid until the next Decide.
	resource string
	cost     int64
	op       int
	mode     headgate.OpKind
	before   int64 // the cost of earlier results that share the Op
	lacks    uint8 // the position of the part that the request lacks; with KeyMissing
	full     bool  // the rule had no free place before the store was called
	// counted says that Config.Meter has counted the rule as admitted; others, that it summed it under the others.
	counted, others bool
	nameAt          int     // where the customer's name begins in key; with a quota
	givenBack       int64   // metered units that a Refund gave back
	member          *member // in the queue of its key; nil when the result does not wait
}

// KeyHash identifies the key in logs without showing it. It is valid until the next Decide of the
// answer.
func (r *Result) KeyHash() uint64 {
	if r.from == nil {
		return 0
	}
	hash := maphash.String(r.from.state.seed, r.key)
	if r.Stage == SentName {
		return ^hash // A client of fair share may have the same text.
	}
	return hash
}

// AppendRawKey appends the key as its rule made it, without the namespace. For fair share, the
// key is the client's name, and for a sent bucket what its client sent. rule.KeyNames reads it, and domain.AppendKeyName
// the key of a tree. Valid until the next Decide of the answer.
func (r *Result) AppendRawKey(dst []byte) []byte { return append(dst, r.ownKey()...) }

// AppendRawKeyStart is AppendRawKey for at most the first most bytes. Clients choose the length of
// keys of trees: see InTree.
func (r *Result) AppendRawKeyStart(dst []byte, most int) []byte {
	key := r.ownKey()
	return append(dst, key[:min(len(key), most)]...)
}

// InTree reports whether the limit belongs to the tree of a domain, or was sent with a descriptor.
// Package internal/domain then reads the key.
func (r *Result) InTree() bool { return r.from != nil && r.from.number < 0 }

// ownKey is the key without the namespace.
func (r *Result) ownKey() string {
	if r.from == nil {
		return r.key
	}
	return r.key[len(r.from.space):]
}

// AppendKey appends the parts of the key and their values, as names writes them. Valid until the
// next Decide of the answer.
func (r *Result) AppendKey(dst []byte, names *rule.KeyNames) []byte {
	switch {
	case r.from == nil:
		return dst
	case r.Stage == FairShareName || r.Stage == SentName:
		return names.AppendClient(dst, r.Rule.Key[0], r.key)
	case r.InTree():
		return domain.AppendKeyName(dst, names, r.ownKey())
	default:
		return names.AppendKey(dst, r.ownKey())
	}
}

// Final reports that there is no RetryAfter: the refused request can never pass, or it can pass at the
// end of another request, whose time is not known.
func (r *Result) Final() bool { return final(r.Decision.Reason) }

func final(reason headgate.Reason) bool {
	return reason == headgate.Never || reason == headgate.AnonymousClient || reason == headgate.InFlight || reason == headgate.KeyMissing
}

// Algorithm gives the algorithm of the limit. It is meaningless for fair share and stages.
func (r *Result) Algorithm() headgate.Algorithm {
	if r.window == nil {
		return headgate.TokenBucket
	}
	return r.window.algorithm
}

// Enforced reports whether the result counts for the verdict.
func (r *Result) Enforced() bool { return r.Rule.Mode == Enforce }

// Answer is a guard's decision on a request. Guard.Decide fills it, and the caller may reuse it.
// Its contents are valid until the next Decide. The zero Answer is ready.
type Answer struct {
	storeFacts
	ruleFacts
	shareFacts
	leaseFacts
	waitFacts
	treeFacts

	// Verdict is the strictest of the enforced results, and Allow without one. After an error of
	// Decide it is Deny.
	Verdict headgate.Verdict
	// Results are the limits of the matching rules: first those of the enforced rules in the
	// order of the rules, then those of the shadow rules. Fair share comes first among those of
	// its mode. When enforced fair share refuses, there is no other result, unless the Config
	// is Independent.
	Results []Result
	// StoreError is the reason why the store did not answer and the fallbacks decided, or why
	// units of a refused request could not be returned and stay counted. It is ErrCallerGone
	// when the caller cancelled the decision; that does not count as a fault of the store. A
	// passed deadline of the caller does, like StoreTimeout.
	StoreError error
	// Error says why the request cannot be decided: it is the error of Decide.
	Error error
	// Exempt says that the request is one of Config.Exempt: it was not decided, and the verdict is Allow.
	Exempt bool

	closest int
	id      DecisionID // 0 until DecisionID is called
	denied  bool       // one of the results is a refusal
	begun   *set       // of Begin, until the next Decide
	from    *set       // the set that filled the Answer; its limits stay in use until the next Decide
}

func (a *Answer) reset() {
	a.Verdict, a.Results, a.StoreError, a.Error = headgate.Allow, a.Results[:0], nil, nil
	a.closest, a.id, a.denied, a.begun, a.Exempt = -1, 0, false, nil, false
	a.storeFacts.reset()
	a.ruleFacts.reset()
	a.share, a.sharer = fairshare.Receipt{}, nil
	a.leases, a.leased = false, a.leased[:0]
	a.waitFacts.reset()
	a.tree, a.node, a.sent = nil, nil, nil
}

// fail drops all results, because the request cannot be decided.
func (a *Answer) fail(err error) {
	a.reset()
	a.Verdict, a.Error = headgate.Deny, err
}

// Closest gives the enforced result that determines the verdict: the refusal with the longest
// RetryAfter, or else the longest wait, or else the limit with the smallest remaining part. It
// is nil when no enforced rule matches.
func (a *Answer) Closest() *Result {
	if a.closest < 0 || a.closest >= len(a.Results) {
		return nil
	}
	return &a.Results[a.closest]
}

// Shadowed gives the result of the shadow rules that would determine the verdict if they were enforced, chosen
// as for Closest. It is nil when no shadow rule matches.
func (a *Answer) Shadowed() *Result {
	if _, i := a.determining(false); i >= 0 {
		return &a.Results[i]
	}
	return nil
}

// Matched gives the rules that decided on the request, in the order of Config.Rules. A rule without a result has an Override that is
// Unlimited, or a quota that another rule counts. After a refusal by fair share there are none.
func (a *Answer) Matched() []*Rule {
	if a.from == nil {
		return nil
	}
	rules := make([]*Rule, 0, len(a.matched))
	for _, m := range a.matched {
		if r := a.from.rules[m].Rule; r.TrialOf == "" {
			rules = append(rules, r)
		}
	}
	return rules
}

// RetryAfter gives the time until the request may go: its wait, or the time until a refused
// request can pass. It is 0 for Allow, and for a refusal that is final.
func (a *Answer) RetryAfter() time.Duration {
	if r := a.Closest(); r != nil && !r.Final() {
		return r.Decision.RetryAfter
	}
	return 0
}

// Drops reports whether a refusal gets no answer: its rule has the action Drop, and the refusal is not for lack of our own
// capacity, which is no fault of the client.
func (a *Answer) Drops() bool {
	r := a.Closest()
	return r != nil && a.Verdict == headgate.Deny && r.Rule.Exceed.Action == Drop && !r.Decision.Reason.Overloaded() &&
		r.Decision.Reason != headgate.KeyMissing
}

// judge sets the verdict and the result that determines it.
func (a *Answer) judge() { a.Verdict, a.closest = a.determining(true) }

// determining gives the strictest verdict of the enforced results, or of the others, and the number of the
// result that determines it. Without a result, the number is -1.
func (a *Answer) determining(enforced bool) (verdict headgate.Verdict, closest int) {
	verdict, closest = headgate.Allow, -1
	for i := range a.Results {
		r := &a.Results[i]
		if r.Enforced() != enforced || !enforced && r.Rule.TrialOf != "" {
			continue
		}
		switch v := r.Decision.Verdict; {
		case v == headgate.Allow && r.window != nil && r.window.kind != kindLimit && r.Decision.Reason != headgate.Degraded:
			// The remaining attempts before a ban are not shown to clients.
		case v > verdict || closest < 0:
			verdict, closest = max(verdict, v), i
		case v == verdict && closer(&r.Decision, &a.Results[closest].Decision):
			closest = i
		}
	}
	return verdict, closest
}

// closer reports whether d holds a caller back more than a decision with the same verdict.
func closer(d, than *headgate.Decision) bool {
	if d.Verdict == headgate.Allow {
		return left(d) < left(than)
	}
	return patience(d) > patience(than)
}

// left gives the remaining part of the limit. It is 1 for a decision without counts: a local
// result of another rule then determines the answer.
func left(d *headgate.Decision) float64 {
	if d.Limit == 0 || d.Reason == headgate.StoreUnavailable && d.At == 0 {
		return 1
	}
	return float64(d.Remaining) / float64(d.Limit)
}

func patience(d *headgate.Decision) time.Duration {
	if final(d.Reason) {
		return math.MaxInt64
	}
	return d.RetryAfter
}
