package compensate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/compensate"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// parted decides the Ops of a group in parts, like a store that keeps keys on several servers.
type parted struct {
	*memory.Store

	policies map[headgate.PolicyID]headgate.Policy
	r        *rand.Rand // cuts groups into parts
}

func (p *parted) decide(t *testing.T, ops []headgate.Op) []headgate.Decision {
	t.Helper()
	if len(ops) > 0 && ops[0].Kind == headgate.TakeIfAll {
		return p.inTwoRounds(t, ops)
	}
	compensate.Soften(ops, p.policiesOf(ops))
	return p.inParts(t, ops)
}

func (p *parted) policiesOf(ops []headgate.Op) []headgate.Policy {
	policies := make([]headgate.Policy, len(ops))
	for i := range ops {
		policies[i] = p.policies[ops[i].Policy]
	}
	return policies
}

// inTwoRounds decides a group of TakeIfAll.
func (p *parted) inTwoRounds(t *testing.T, ops []headgate.Op) []headgate.Decision {
	t.Helper()
	looks := slices.Clone(ops)
	for i := range looks {
		looks[i].Kind = headgate.Peek
	}
	decisions := p.inParts(t, looks)
	which, _ := compensate.Counting(p.policiesOf(ops), decisions)
	second := make([]headgate.Op, len(which))
	for i, at := range which {
		second[i] = ops[at]
	}
	for i, d := range p.inParts(t, second) {
		decisions[which[i]] = d
	}
	return decisions
}

func (p *parted) inParts(t *testing.T, ops []headgate.Op) []headgate.Decision {
	t.Helper()
	policies, decisions := p.policiesOf(ops), make([]headgate.Decision, len(ops))
	var ends []int
	for from := 0; from < len(ops); {
		to := min(from+1+p.r.IntN(3), len(ops))
		if err := p.Apply(t.Context(), ops[from:to], decisions[from:to]); err != nil {
			t.Fatal(err)
		}
		ends, from = append(ends, to), to
	}
	back := compensate.Settle(ops, policies, ends, decisions, nil)
	if err := p.Return(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	return decisions
}

// TestRefusedSecondRound: another request takes the last unit of a key between the rounds of a
// group of TakeIfAll. The other part's units are returned, although its policy counts refused
// attempts.
func TestRefusedSecondRound(t *testing.T) {
	p := &parted{open(t, storetest.NewClock()), map[headgate.PolicyID]headgate.Policy{}, rand.New(rand.NewPCG(1, 3))}
	policy := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1, Per: time.Hour}, CountRejected: true}
	id, err := p.Prepare(policy)
	if err != nil {
		t.Fatal(err)
	}
	ops := []headgate.Op{{Key: "a", Policy: id, Cost: 1, Kind: headgate.TakeIfAll}, {Key: "b", Policy: id, Cost: 1, Kind: headgate.TakeIfAll}}
	policies := []headgate.Policy{policy, policy}
	apply := func(ops ...headgate.Op) []headgate.Decision {
		decisions := make([]headgate.Decision, len(ops))
		for i := range ops {
			if err := p.Apply(t.Context(), ops[i:i+1], decisions[i:i+1]); err != nil {
				t.Fatal(err)
			}
		}
		return decisions
	}
	if which, passes := compensate.Counting(policies, make([]headgate.Decision, 2)); len(which) != 2 || !passes {
		t.Errorf("both Ops pass: %v count, passes %v", which, passes)
	}
	apply(headgate.Op{Key: "b", Policy: id, Cost: 1})
	decisions := apply(ops...)
	back := compensate.Settle(ops, policies, []int{1, 2}, decisions, nil)
	if len(back) != 1 || decisions[0].Verdict != headgate.Allow || decisions[0].Remaining != 1 || !decisions[0].Receipt.Empty() {
		t.Errorf("%d receipts are returned, and the Op that passes alone is %+v", len(back), decisions[0])
	}
}

// TestAsOneGroup compares groups of several keys with a store that decides each group as one.
// Without concurrent requests, the decisions and the remaining units are the same.
func TestAsOneGroup(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { play(t, rand.New(rand.NewPCG(seed, 3))) })
	}
}

func play(t *testing.T, r *rand.Rand) {
	t.Helper()
	clock := storetest.NewClock()
	whole, apart := open(t, clock), &parted{open(t, clock), map[headgate.PolicyID]headgate.Policy{}, r}
	var ids []headgate.PolicyID
	for _, policy := range policies() {
		id, err := whole.Prepare(policy)
		if err != nil {
			t.Fatal(err)
		}
		same, err := apart.Prepare(policy)
		if err != nil || same != id {
			t.Fatalf("prepared as %d and %d: %v", id, same, err)
		}
		apart.policies[id] = policy
		ids = append(ids, id)
	}
	for step := range 300 {
		clock.Advance(time.Duration(r.IntN(300)) * time.Millisecond)
		var ops []headgate.Op
		cost, kind := r.Int64N(7), headgate.OpKind(r.IntN(2))*headgate.TakeIfAll
		for i, id := range ids {
			if r.IntN(2) == 0 {
				ops = append(ops, headgate.Op{Key: fmt.Sprint("k", i), Policy: id, Cost: cost, Kind: kind})
			}
		}
		want := make([]headgate.Decision, len(ops))
		if err := whole.Apply(t.Context(), ops, want); err != nil {
			t.Fatal(err)
		}
		got := apart.decide(t, ops)
		for i := range got {
			compare(t, step, got[i], want[i])
		}
		for i := range got {
			look := []headgate.Op{{Key: ops[i].Key, Policy: ops[i].Policy, Kind: headgate.Peek}}
			var a, b [1]headgate.Decision
			if err := whole.Apply(t.Context(), look, a[:]); err != nil {
				t.Fatal(err)
			}
			if err := apart.Apply(t.Context(), look, b[:]); err != nil {
				t.Fatal(err)
			}
			if a[0].Remaining != b[0].Remaining {
				t.Fatalf("step %d, %s: %d remain together and %d apart", step, ops[i].Key, a[0].Remaining, b[0].Remaining)
			}
		}
	}
}

// compare ignores times: a part does not know its ResetAfter without its own units.
func compare(t *testing.T, step int, got, want headgate.Decision) {
	t.Helper()
	if got.Verdict != want.Verdict || got.Reason != want.Reason || got.Remaining != want.Remaining ||
		got.Receipt.Empty() != want.Receipt.Empty() || got.Verdict == headgate.Deny && got.RetryAfter != want.RetryAfter {
		t.Fatalf("step %d:\n got %+v\nwant %+v", step, got, want)
	}
}

func policies() []headgate.Policy {
	l := headgate.Limit{Count: 5, Per: time.Second}
	return []headgate.Policy{
		{Limit: l},
		{Limit: headgate.Limit{Count: 9, Per: 3 * time.Second, Burst: 6}},
		{Algorithm: headgate.LeakyBucket, Limit: l},
		{Algorithm: headgate.FixedWindow, Limit: l},
		{Algorithm: headgate.FixedWindow, Limit: l, CountRejected: true, CountAll: true},
		{Algorithm: headgate.FixedWindow, Limit: l, CountRejected: true},
		{Algorithm: headgate.SlidingLog, Limit: l},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 6, Per: time.Second}, CountRejected: true},
		{Algorithm: headgate.SlidingWindow, Limit: l, SubWindows: 4},
		{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 20, Per: 2 * time.Second}, BanFor: time.Second},
	}
}

func open(t *testing.T, clock *storetest.Clock) *memory.Store {
	t.Helper()
	s, err := memory.New(memory.Config{Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
