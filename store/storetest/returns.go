package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/limit/twin"
)

// testReturns runs random takes, bookings, refunds and returns of one limit, and of two limits in
// a group. Receipts are returned in any order, early and late, in part and repeatedly. Every
// store frees the same units as the twins.
func (s *suite) testReturns(t *testing.T) {
	t.Run("a late return owes nothing", func(t *testing.T) { s.each(t, headgate.Limit{Count: 10, Per: time.Second}, lateReturn) })
	t.Run("a return of nothing", func(t *testing.T) { s.each(t, headgate.Limit{Count: 10, Per: time.Minute}, returnOfNothing) })
	for seed := range uint64(max(s.rounds/40, 6)) {
		r := rand.New(rand.NewPCG(seed, 38))
		policies := []headgate.Policy{s.returnable(r)}
		if seed%3 > 0 {
			policies = append(policies, s.returnable(r))
		}
		t.Run(fmt.Sprintf("random %d", seed), func(t *testing.T) { s.playReturns(t, policies, r) })
	}
}

// lateReturn: a receipt that owes nothing lowers no later return.
func lateReturn(b *bench, p headgate.Policy, id headgate.PolicyID) {
	if p.Algorithm == headgate.LeakyBucket {
		return // A departure comes back only if it is the last one.
	}
	first := b.take("k", id, 10)
	b.clock.Advance(5 * time.Second)
	second := b.take("k", id, 10)
	b.giveBack(first.Receipt)
	b.wantRemaining("after the return of refilled units", "k", id, 0)
	b.giveBack(second.Receipt)
	b.wantRemaining("after the return of the other units", "k", id, 10)
}

// returnOfNothing: a receipt whose units are all kept is not used up.
func returnOfNothing(b *bench, _ headgate.Policy, id headgate.PolicyID) {
	r := b.take("k", id, 10).Receipt
	none := r
	none.Kept = 10
	b.giveBack(none)
	b.wantRemaining("after the return of nothing", "k", id, 0)
	b.giveBack(r)
	b.wantRemaining("after the return of all units", "k", id, 10)
}

// returnable draws a policy that has receipts.
func (s *suite) returnable(r *rand.Rand) headgate.Policy {
	offered := s.offered(headgate.Limit{Count: 1, Per: time.Second})
	p := offered[r.IntN(len(offered))]
	p.Limit.Per = []time.Duration{time.Second, 3 * time.Second, 700 * time.Millisecond}[r.IntN(3)]
	p.Limit.Count = []int64{1 + r.Int64N(20), 10, 7, 1_000_000}[r.IntN(4)]
	switch {
	case p.Algorithm == headgate.SlidingLog:
		p.Limit.Count = min(p.Limit.Count, 100)
	case p.Algorithm == headgate.SlidingWindow:
		p.SubWindows = 1 + r.IntN(12)
	case p.Algorithm < headgate.FixedWindow:
		p.Limit.Burst = r.Int64N(2 * p.Limit.Count)
		p.MaxWait = []time.Duration{0, 0, p.Limit.Per / 2, 3 * p.Limit.Per}[r.IntN(4)]
	}
	if p.Algorithm >= headgate.FixedWindow && r.IntN(3) == 0 {
		p.CountRejected = true
		p.CountAll = p.Algorithm == headgate.FixedWindow && r.IntN(2) == 0
	}
	return p
}

// returned is a receipt, and the take of the twin that it belongs to.
type returned struct {
	receipt headgate.Receipt
	at      state
	n       int
}

// returns is one key with one or two limits, beside its twins.
type returns struct {
	*bench

	r      *rand.Rand
	m      *model
	ids    []headgate.PolicyID
	passed map[state]int // The takes that have passed.
	all    []returned
	cost   int64 // The largest cost.
	apart  func([]headgate.Decision, int) bool
}

func (s *suite) playReturns(t *testing.T, policies []headgate.Policy, r *rand.Rand) {
	t.Helper()
	b := &returns{
		bench: s.bench(t), r: r, passed: map[state]int{}, cost: 1, apart: s.forgiven,
		m: &model{policies: map[headgate.PolicyID]headgate.Policy{}, keys: map[state]twin.Key{}},
	}
	least := policies[0].Limit.Count
	for _, p := range policies {
		id := b.prepare(p)
		b.ids, b.m.policies[id] = append(b.ids, id), p
		least = min(least, p.Limit.Count)
	}
	b.cost = max(least/2, 1)
	for step := range 120 {
		if r.IntN(2) == 0 {
			b.clock.Advance(b.pause(policies[r.IntN(len(policies))].Limit))
		}
		switch r.IntN(8) {
		case 0, 1, 2:
			b.giveSomeBack()
		case 3:
			b.refund(step)
		case 4:
			b.giveLastBack(step)
		default:
			b.group(step)
		}
		b.look(step)
	}
	if len(b.all) == 0 {
		t.Errorf("%+v: no request passed, so the test checks nothing", policies)
	}
}

// pause is a few intervals or a few periods, in whole microseconds.
func (b *returns) pause(l headgate.Limit) time.Duration {
	most := l.Per / time.Duration(l.Count) * 3
	if b.r.IntN(3) == 0 {
		most = 2 * l.Per
	}
	return time.Duration(b.r.Int64N(int64(most + time.Microsecond))).Truncate(time.Microsecond)
}

// group decides one Op of each limit, in one group.
func (b *returns) group(step int) {
	b.t.Helper()
	kind := []headgate.OpKind{headgate.Take, headgate.Take, headgate.TakeIfAll, headgate.TakeNow, headgate.Book}[b.r.IntN(5)]
	if kind > headgate.Peek && kind != headgate.TakeIfAll && (len(b.ids) > 1 || !limit.Accepts(b.m.policies[b.ids[0]].Algorithm, kind)) {
		kind = headgate.Take // The model decides groups by a Peek.
	}
	cost := b.r.Int64N(b.cost + 1)
	ops := make([]headgate.Op, len(b.ids))
	for i, id := range b.ids {
		ops[i] = headgate.Op{Key: fmt.Sprintf("k%d", b.r.IntN(2)), Window: uint8(i), Policy: id, Cost: cost, Kind: kind}
	}
	got, want, passes := b.apply(ops...), []twin.Answer(nil), true
	if len(ops) == 1 {
		want = append(want, b.m.key(ops[0]).Do(b.clock.Now(), cost, kind))
	} else {
		want = b.m.group(b.clock.Now(), ops)
	}
	for i := range got {
		if b.apart(got, i) {
			want[i].Reset = got[i].ResetAfter
		}
		compare(b.t, fmt.Sprintf("step %d, op %+v", step, ops[i]), b.m.policies[ops[i].Policy], got[i], want[i])
		passes = passes && got[i].Verdict != headgate.Deny
	}
	if !passes {
		return
	}
	for i := range got {
		at := state{ops[i].Key, ops[i].Window}
		b.all = append(b.all, returned{got[i].Receipt, at, b.passed[at]})
		b.passed[at]++
	}
}

// giveSomeBack returns up to three receipts in one call, most often late ones, in any order.
func (b *returns) giveSomeBack() {
	b.t.Helper()
	var receipts []headgate.Receipt
	for range 1 + b.r.IntN(3) {
		if len(b.all) == 0 {
			return
		}
		one := b.all[len(b.all)-1-b.r.IntN(min(len(b.all), 12))]
		if one.receipt.Empty() {
			continue
		}
		if b.r.IntN(3) == 0 {
			one.receipt.Kept = b.r.Int64N(one.receipt.Cost+3) - 1
		}
		receipts = append(receipts, one.receipt)
		b.m.keys[one.at].ReturnPart(one.n, one.receipt.Kept, b.clock.Now())
	}
	b.giveBack(receipts...)
}

// giveLastBack returns a late receipt if it is the last booking.
func (b *returns) giveLastBack(step int) {
	b.t.Helper()
	store, ok := b.store.(headgate.LastReturner)
	if !ok || len(b.all) == 0 {
		return
	}
	one := b.all[len(b.all)-1-b.r.IntN(min(len(b.all), 3))]
	if b.r.IntN(3) == 0 {
		one.receipt.Kept = b.r.Int64N(one.receipt.Cost+3) - 1
	}
	last, want := b.m.keys[one.at].(interface {
		ReturnLast(n int, kept int64, now headgate.Instant) bool
	})
	want = want && last.ReturnLast(one.n, one.receipt.Kept, b.clock.Now())
	if got, err := store.ReturnLast(b.t.Context(), &one.receipt); got != want || err != nil {
		b.t.Fatalf("step %d: ReturnLast of %+v: %v, %v, want %v", step, one.receipt, got, err, want)
	}
}

// refund gives units back without a receipt, now and then.
func (b *returns) refund(step int) {
	b.t.Helper()
	op := headgate.Op{Key: "k0", Policy: b.ids[0], Cost: b.r.Int64N(b.cost + 1), Kind: headgate.Refund}
	if b.m.policies[op.Policy].Algorithm == headgate.LeakyBucket || b.r.IntN(4) > 0 {
		return
	}
	got, want := b.apply(op), b.m.group(b.clock.Now(), []headgate.Op{op})
	compare(b.t, fmt.Sprintf("step %d, a refund of %d", step, op.Cost), b.m.policies[op.Policy], got[0], want[0])
}

// look compares every state with its twin.
func (b *returns) look(step int) {
	b.t.Helper()
	for k := range 2 {
		for i, id := range b.ids {
			op := headgate.Op{Key: fmt.Sprintf("k%d", k), Window: uint8(i), Policy: id, Kind: headgate.Peek, Cost: 1}
			got, want := b.apply(op), b.m.group(b.clock.Now(), []headgate.Op{op})
			compare(b.t, fmt.Sprintf("step %d, a look at %+v", step, op), b.m.policies[id], got[0], want[0])
		}
	}
}
