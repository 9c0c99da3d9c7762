package guard

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/rule"
)

// SentBatch decides requests to token buckets that clients describe, with one Apply of the store.
// The keys are apart from those of rules and domains. A key has one state: a client that changes
// the limit of a key keeps the units that were used. See SharedBucket for the exception.
//
// The calls are Begin, Add for each request, Decide, and Decision for each request. Its memory can be
// used for many batches. A SentBatch is not safe for concurrent use. The zero SentBatch is ready.
//
// The Config's Observer gets each decision as one of the rule of SentRule, of a request that has only its cost.
type SentBatch struct {
	question

	guard *Guard
	set   *set
	keys  []byte
	sent  []sentRequest
	used  []*sentLimit // acquired, the last one for last
	last  headgate.Limit
	err   error

	request headgate.Request // that the Observer gets
	answer  Answer           // that the Observer gets: one for all, because Answers are large
}

// sentRequest is a request of a SentBatch: an Op, or why there is none.
type sentRequest struct {
	op    int32
	limit int32 // in used
	fault error
}

// SentName is the name of SentRule in Result.Stage, logs and metrics. Its brackets keep it apart from the names of rules.
const SentName = "(sent)"

// SentRule returns the rule that describes the buckets that clients send in logs and metrics. Their keys are shown like
// those of a descriptor.
func SentRule() Rule {
	key, _ := rule.ParsePart("descriptor:key") // It is valid.
	return Rule{Rule: rule.Rule{Name: SentName, Key: []rule.Part{key}}, Exceed: Exceed{Action: Reject}, Fallback: FallbackError}
}

// Begin begins a batch that g decides.
func (b *SentBatch) Begin(g *Guard) {
	b.guard, b.set, b.err = g, g.now(), nil
	b.ops, b.keys, b.sent, b.used, b.last = b.ops[:0], b.keys[:0], b.sent[:0], b.used[:0], headgate.Limit{}
}

// Add adds a request for cost units of the token bucket l of a key. A cost of 0 only reads. Requests
// are decided in the order of Add. Add copies the key.
func (b *SentBatch) Add(key []byte, l headgate.Limit, cost int64) {
	fault := b.acquire(l)
	if fault == nil && (cost < 0 || cost > headgate.MaxUnits) {
		fault = headgate.ErrBadCost
	}
	if fault != nil {
		b.sent = append(b.sent, sentRequest{fault: fault})
		return
	}
	from := len(b.keys)
	b.keys = append(append(b.keys, b.set.sent.prefix...), key...)
	// The store reads the key only during Apply, and nothing writes to it until then.
	text := unsafe.String(unsafe.SliceData(b.keys[from:]), len(b.keys)-from) //nolint:gosec // A copy would be an allocation.
	n := len(b.ops)
	b.sent = append(b.sent, sentRequest{op: int32(n), limit: int32(len(b.used) - 1)})
	if n < cap(b.ops) {
		b.ops = b.ops[:n+1]
	} else {
		b.ops = append(b.ops, headgate.Op{})
	}
	op, w := &b.ops[n], &b.used[len(b.used)-1].windows[0]
	op.Key, op.Policy, op.Window, op.Group, op.Kind, op.Cost, op.Edges = text, w.id, w.number, uint8(n&1), headgate.Take, cost, nil
	if cost == 0 {
		op.Kind = headgate.Peek
	}
}

// sentKeys begins the keys of sent buckets. The keys of rules and domains begin with the length of a
// name, which is above 0, and namespaces with 0 and such a length.
const sentKeys = "\x00\x00"

// acquire makes l the last of used. Neighbours with one limit acquire it once.
func (b *SentBatch) acquire(l headgate.Limit) error {
	switch {
	case b.set == nil:
		return headgate.ErrNotMade
	case b.set.sent == nil:
		return ErrNoStore
	case len(b.used) > 0 && l == b.last:
		return nil
	}
	kept, err := b.set.sent.acquire(l)
	if err != nil {
		return err
	}
	b.used, b.last = append(b.used, kept), l
	return nil
}

// Len is the number of added requests.
func (b *SentBatch) Len() int { return len(b.sent) }

// Decide decides all requests, within Config.StoreTimeout.
func (b *SentBatch) Decide(ctx context.Context) {
	if len(b.ops) > 0 {
		b.err = b.guard.put(ctx, b.set, b, &b.question, nil, nil)
	}
	if len(b.ops) > 0 && b.set.config.Observer != nil {
		b.observe(ctx)
	}
	for _, kept := range b.used {
		b.set.sent.table.release(kept)
	}
	clear(b.used)
	b.set = nil // A replaced set must not stay in use.
}

// ask has nothing to do: Add has added the Ops.
func (*SentBatch) ask(context.Context, *question, []headgate.Request, []Answer) (waited time.Duration) {
	return 0
}

// settle is not called, because there are no Answers: Decision reads the decisions.
func (*SentBatch) settle(context.Context, int, *headgate.Request, *Answer, error) {}

// observe reports the decisions.
func (b *SentBatch) observe(ctx context.Context) {
	a, shown, prefix := &b.answer, &b.set.sent.shown, len(b.set.sent.prefix)
	a.reset()
	r := a.nextResult()
	a.describe(r, shown, &b.used[0].windows[0], "", &b.request)
	r.Policy, r.Stage, r.Fallback = SentName, SentName, b.err != nil
	if a.StoreError, a.closest = b.err, 0; b.err != nil && errors.Is(ctx.Err(), context.Canceled) {
		a.StoreError = callerGone(b.err)
	}
	for i := range b.sent {
		sent := &b.sent[i]
		if sent.fault != nil {
			continue
		}
		op, used := &b.ops[sent.op], b.used[sent.limit]
		b.request.Kind, b.request.Cost = op.Kind, op.Cost
		r.window, r.Limit, r.key, r.cost, r.mode = &used.windows[0], used.limit, op.Key[prefix:], op.Cost, op.Kind
		if b.err == nil {
			r.Decision = b.decisions[sent.op]
		} else {
			r.Decision = unavailable(r)
		}
		a.Verdict = r.Decision.Verdict
		b.set.observe(&b.request, a)
	}
	clear(a.Results) // They would keep a replaced set in use.
}

// Decision gives the decision on request i, valid until the next Begin. The error is that of the store,
// ErrBadCost, ErrTooManyPolicies, or says what is invalid in the limit.
func (b *SentBatch) Decision(i int) (*headgate.Decision, error) {
	switch r := &b.sent[i]; {
	case r.fault != nil:
		return nil, r.fault
	case b.err != nil:
		return nil, &StoreError{b.err}
	default:
		return &b.decisions[r.op], nil
	}
}

// StoreError says that a store did not answer. It wraps the reason.
type StoreError struct{ reason error }

// Error gives the reason.
func (e *StoreError) Error() string { return "guard: the store did not answer: " + e.reason.Error() }

// Unwrap gives the reason.
func (e *StoreError) Unwrap() error { return e.reason }

// sharedPeriod is divided by the seconds of usual periods: by those of 1 to 10 seconds, of each divisor of
// an hour or a day, of a week and of 30 days.
const sharedPeriod = 210 * 24 * time.Hour

// maxShared bounds the units in that period. Scripts of Redis cannot count more in any period.
const maxShared = 1 << 51

// SharedBucket gives the limit under which a store counts a sent bucket: the same rate and Burst, in one
// period for all limits, because a store keeps the state of a key when the period stays. A rate that
// has no whole number of units in that period, or more than 2^51 of them, keeps its own, and its state is apart.
func SharedBucket(l headgate.Limit) headgate.Limit {
	if l.Per <= 0 || l.Per%time.Second != 0 || l.Count <= 0 {
		return l
	}
	shared, seconds := int64(sharedPeriod/time.Second), int64(l.Per/time.Second)
	if l.Count > maxShared/shared*seconds {
		return l
	}
	divisor := gcd(shared, seconds)
	if l.Count%(seconds/divisor) != 0 {
		return l
	}
	burst := l.Burst
	if burst == 0 {
		burst = l.Count
	}
	return headgate.Limit{Count: l.Count / (seconds / divisor) * (shared / divisor), Per: sharedPeriod, Burst: burst}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// bucketPolicy is the policy of a sent bucket.
func bucketPolicy(l headgate.Limit) (headgate.Policy, error) {
	own := headgate.Policy{Algorithm: headgate.TokenBucket, Limit: l, Named: true}
	if _, err := limit.Compile(own); err != nil {
		return own, fmt.Errorf("guard: the limit %s that was sent: %w", l, err)
	}
	own.Limit = SharedBucket(l)
	return own, nil
}
