package access

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/store/memory"
)

// addressMemory is the memory of the counts of addresses: 131,072 of them. An address above its limit keeps
// its place; others make room for new ones.
//
// config.ServerMemoryBound counts it.
const addressMemory = 4 << 20

// apartMemory is the memory of the counts of a gate with CountApart: 8,192 addresses. config.ServerMemoryBound
// counts it.
const apartMemory = 256 << 10

// sharedPrefix is the part of an IPv6 address that names one client.
const sharedPrefix = 64

// bucket is the limit of one caller. Reloads change its plan and keep its state.
type bucket struct {
	setting string
	clock   func() headgate.Instant

	mu   sync.Mutex // Guards the fields below. It is held for one decision.
	plan *limit.Plan
	last *limit.Plan // the plan of the last take
	cell limit.Cell
}

// takeSome takes up to n units, and gives how many.
func (b *bucket) takeSome(n int64) (granted int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	d := b.draw(now, n)
	if d.Verdict == headgate.Allow {
		return n, nil
	}
	if d.Remaining > 0 {
		b.draw(now, d.Remaining)
	}
	return d.Remaining, &BusyError{b.setting, d.RetryAfter}
}

// takeAll takes n units or none. More units than the limit has take all of it.
func (b *bucket) takeAll(n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.draw(b.clock(), min(n, b.plan.Policy.Limit.Count))
	if d.Verdict == headgate.Allow {
		return nil
	}
	return &BusyError{b.setting, d.RetryAfter}
}

// draw takes n units, if there are so many. The caller holds mu.
func (b *bucket) draw(now headgate.Instant, n int64) (d headgate.Decision) {
	var draw limit.Draw
	b.plan.JudgeOf(&b.cell, b.last, now, n, headgate.Take, &draw)
	if draw.Verdict == headgate.Allow && b.plan.TakeOf(&b.cell, b.last, &draw) {
		b.last = b.plan
	}
	b.plan.Explain(&draw, &d)
	return d
}

// change gives the bucket another plan. With another period it begins anew: units of different periods cannot be converted.
func (b *bucket) change(plan *limit.Plan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.plan.Policy.Limit == plan.Policy.Limit {
		return
	}
	if b.plan = plan; limit.FamilyOf(b.last.Policy) != limit.FamilyOf(plan.Policy) {
		b.last, b.cell = plan, limit.Cell{}
	}
}

func compile(l headgate.Limit) (*limit.Plan, error) {
	return limit.Compile(headgate.Policy{Algorithm: headgate.TokenBucket, Limit: l})
}

// addresses limits what comes from one address.
type addresses struct {
	setting string
	memory  int64         // addressMemory, but in tests
	store   *memory.Store // nil before the first limit
	exempt  func(netip.Addr) bool
	policy  atomic.Uint64 // the policy and 1; 0 without a limit
}

// change sets the limit; one of 0 means none.
func (a *addresses) change(l headgate.Limit) error {
	next := uint64(0)
	if l.Per > 0 && a.store == nil {
		store, err := memory.New(memory.Config{MaxMemory: a.memory, BlockShare: -1})
		if err != nil {
			return err
		}
		a.store = store
	}
	if l.Per > 0 {
		id, err := a.store.Prepare(headgate.Policy{Algorithm: headgate.TokenBucket, Limit: l})
		if err != nil {
			return err
		}
		next = uint64(id) + 1
	}
	if former := a.policy.Swap(next); former > 0 {
		a.store.Release(headgate.PolicyID(former - 1))
	}
	return nil
}

// take counts one more from an address. The error is a *BusyError.
func (a *addresses) take(from netip.Addr) error {
	policy := a.policy.Load()
	if policy == 0 || !from.IsValid() || a.exempt != nil && a.exempt(from) {
		return nil
	}
	var d headgate.Decision
	op := headgate.Op{Key: keyOf(from), Policy: headgate.PolicyID(policy - 1), Cost: 1}
	if a.store.Take(&op, &d) != nil || d.Verdict == headgate.Allow || d.Reason == headgate.StoreFull {
		// The error is that of a policy that a reload has just released. StoreFull means that all places have
		// addresses above their limit. A refusal would then refuse every new address.
		return nil //nolint:nilerr // As above.
	}
	return &BusyError{a.setting, d.RetryAfter}
}

// keyOf gives the bytes of an IPv4 address, or of the /64 of an IPv6 address.
func keyOf(from netip.Addr) string {
	from = from.Unmap()
	if from.Is4() {
		b := from.As4()
		return string(b[:])
	}
	b := from.As16()
	return string(b[:sharedPrefix/8])
}

// wall is the clock of callers' limits.
func wall(from time.Time) func() headgate.Instant {
	return func() headgate.Instant { return headgate.Instant(time.Since(from)) }
}
