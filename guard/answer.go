package guard

import (
	"hash/maphash"
	"math"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fairshare"
	"github.com/headgate/headgate/rule"
)

// Result is what one limit of one rule decided, or the rule's ban, or fair share.
type Result struct {
	// Rule is the rule, and Window the number of the limit among its Policies, or
	// among those of the override that counts; a ban and a hard limit have 0. A stage
	// without rules is described by a Rule of its own: FairShare.Rule, Stage.Rule.
	Rule   *Rule
	Window int
	// Policy names the limit to the caller: the rule's name, with the period when
	// the rule has several limits ("product", "product-10s"), with -ban and -hard
	// for those.
	Policy string
	// Limit is the limit that decided: of fair share the client's share of the cycle.
	Limit headgate.Limit
	// Stage names the stage of the admission that decided: "" for the rules,
	// FairShareName, or the name of a Stage of the Config.
	Stage string
	// Number is the position of the rule in Config.Rules; 0 for stages without rules.
	Number int
	// Shared reports that the request lacked a part of the rule's key, and counts
	// with all others that lack it.
	Shared bool
	// Fallback reports that the store could not answer, and the rule's fallback did.
	// Under FallbackLocal Limit and Decision are then those of this instance's part.
	Fallback bool
	// Decision is the store's, as the rule's soft limit and its action have it:
	// what they let pass says Allow, with the reason SoftLimit or Degraded.
	Decision headgate.Decision

	window *window
	from   *prepared
	key    string // until the next Decide
	cost   int64
	op     int
	mode   headgate.OpKind
	full   bool    // the rule had no free place when the store was asked
	member *member // in the queue of its key; nil when it does not wait there
}

// KeyHash stands for the key in logs: it tells keys apart and shows none. It is
// right until the next Decide of the answer.
func (r *Result) KeyHash() uint64 {
	if r.from == nil {
		return 0
	}
	return maphash.String(r.from.state.seed, r.key)
}

// AppendRawKey appends the key as its rule made it, without the namespace: of fair
// share, the client's name. rule.KeyNames reads it. It is right until the next Decide
// of the answer.
func (r *Result) AppendRawKey(dst []byte) []byte { return append(dst, r.ownKey()...) }

// ownKey is the key without the namespace.
func (r *Result) ownKey() string {
	if r.from == nil {
		return r.key
	}
	return r.key[len(r.from.space):]
}

// AppendKey appends the parts of the key and their values, as names writes them. It
// is right until the next Decide of the answer.
func (r *Result) AppendKey(dst []byte, names *rule.KeyNames) []byte {
	switch {
	case r.from == nil:
		return dst
	case r.Stage == FairShareName:
		return names.AppendClient(dst, r.Rule.Key[0], r.key)
	default:
		return names.AppendKey(dst, r.ownKey())
	}
}

// Final reports, of a refusal, that the same request never passes, however long it
// waits: there is no RetryAfter.
func (r *Result) Final() bool { return final(r.Decision.Reason) }

func final(reason headgate.Reason) bool {
	return reason == headgate.Never || reason == headgate.AnonymousClient
}

// Enforced reports whether the result counts for the verdict.
func (r *Result) Enforced() bool { return r.Rule.Mode == Enforce }

// Answer is what a guard says of a request. It is filled by Guard.Decide and may
// be used again; nothing in it outlives the next Decide. The zero Answer is ready.
type Answer struct {
	// Verdict is the strictest of the enforced results; Allow when there is none. After
	// an error of Decide it is Deny.
	Verdict headgate.Verdict
	// Results are the limits of the rules that match: those of the enforced rules
	// in the order of the rules, then those of the shadow rules. Fair share is the
	// first of those of its mode. Where it refuses, and is enforced, it is alone:
	// nobody else was asked, unless all count on their own.
	Results []Result
	// StoreError is why the store could not answer, and the fallbacks did, or why
	// what a refused request took could not be returned and stays counted. It is
	// ErrCallerGone when the caller cancelled the decision: that says nothing of the
	// store, and its numbers leave it out. A caller's own deadline that passes is the
	// store's fault as StoreTimeout is: somebody waited for it in vain.
	StoreError error
	// Error is, after DecideAll, the error that Decide would have given; nil after Decide.
	Error error

	closest  int
	group    uint8
	begun    *set // by Begin, until the next Decide
	from     *set // that filled it last: its limits are in use until the next Decide
	resolved rule.Needs
	soft     bool // one of the rules has a soft limit
	usual    bool // every decision is that the units stay within the limit
	denied   bool // one of the results is a refusal
	matched  []int
	scoped   []int // what the scope of fair share finds
	keys     []byte
	own      question
	asks     *question // own, or that of a DecideAll
	receipts []headgate.Receipt
	share    fairshare.Receipt
	sharer   *fairshare.Limiter // holds share; nil when there is none to give back
	deadline time.Time          // of the store's budget; zero is none
	local    headgate.Store     // holds the receipts, if a fallback took; nil is the guard's store
	waiter   *waiter
	shadows  []*waiter // those of shadow rules
	batch    *batch    // the DecideAll that decides; nil else
}

func (a *Answer) reset() {
	a.Verdict, a.Results, a.StoreError, a.Error = headgate.Allow, a.Results[:0], nil, nil
	a.closest, a.group, a.soft, a.usual, a.denied = -1, 0, false, true, false
	a.begun, a.deadline, a.local, a.waiter = nil, time.Time{}, nil, nil
	a.resolved, a.share, a.sharer = 0, fairshare.Receipt{}, nil
	clear(a.shadows)
	a.keys, a.shadows = a.keys[:0], a.shadows[:0]
	if a.asks = &a.own; a.batch != nil {
		a.asks = &a.batch.question
	} else {
		a.own.ops = a.own.ops[:0]
	}
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
	a.Verdict, a.closest = headgate.Allow, -1
	for i := range a.Results {
		r := &a.Results[i]
		if !r.Enforced() {
			continue
		}
		switch v := r.Decision.Verdict; {
		case v == headgate.Allow && r.window.kind != kindLimit && r.Decision.Reason != headgate.Degraded:
			// How far a ban is off is nobody's affair until it comes.
		case v > a.Verdict || a.closest < 0:
			a.Verdict, a.closest = max(a.Verdict, v), i
		case v == a.Verdict && closer(&r.Decision, &a.Results[a.closest].Decision):
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

// left is the part of the limit that remains. It is all where nobody has counted:
// where Local has for another rule, that one knows more.
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
