package prefetch

import (
	"context"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// granting grants every request in full, and decides nothing.
type granting struct{ headgate.Store }

func (granting) Prepare(headgate.Policy) (headgate.PolicyID, error) { return 1, nil }

func (granting) Release(headgate.PolicyID) {}

func (granting) Grant(_ context.Context, ops []headgate.Op, _ []int64, decisions []headgate.Decision) error {
	for i := range ops {
		decisions[i] = headgate.Decision{At: 1 << 60, Receipt: headgate.Receipt{Nonce: 1, Cost: ops[i].Cost}}
	}
	return nil
}

// TestAbandonedFlightKeepsNothing: a group of two keys leaves while its flight lands: after
// it has given up the units of the first key, and before the second. The flight then keeps
// nothing, so no units are added to those it brought.
func TestAbandonedFlightKeepsNothing(t *testing.T) {
	s, err := New(Config{Source: granting{}, Clock: func() time.Duration { return time.Hour }})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Prepare(headgate.Policy{
		Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1000, Per: time.Second}, Hold: 100 * time.Millisecond, Batch: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	ops := []headgate.Op{{Key: "a", Policy: id, Cost: 1}, {Key: "b", Policy: id, Cost: 1}}
	g := group{ops: ops, decisions: make([]headgate.Decision, 2)}
	if err := g.split(s); err != nil {
		t.Fatal(err)
	}
	f := &flight{done: make(chan struct{}), cancel: func() {}}
	for i := range g.parts {
		p := &g.parts[i]
		p.flight, p.grant, p.leads = f, i, true
		f.add(ops, p, s.beginFlight(p), 1, 1, 11)
	}
	f.decisions = make([]headgate.Decision, 2)

	s.abandon(&g.parts[0])
	s.run(f)
	for range 3 { // Other requests spend the landed units.
		var d headgate.Decision
		if err := s.Take(t.Context(), &ops[1], &d); err != nil || d.Verdict != headgate.Allow {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	s.abandon(&g.parts[1])

	spent := 3
	for ; spent < 100; spent++ {
		if got, _ := s.quick(&s.policies.Get(id).Plan, &ops[1], &headgate.Decision{}); got != answered {
			break
		}
	}
	if spent > 11 {
		t.Errorf("%d units of 11 that were granted are spent", spent)
	}
}

// TestStayNeedsNoLanding: refill finds a flight that has landed and is still in its slot. It
// must not wait for the landing.
func TestStayNeedsNoLanding(t *testing.T) {
	s, err := New(Config{Source: granting{}, Clock: func() time.Duration { return time.Hour }})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.Prepare(headgate.Policy{
		Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1000, Per: time.Second}, Hold: 100 * time.Millisecond, Batch: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	op := headgate.Op{Key: "a", Policy: id, Cost: 1}
	p := keyOps{tag: s.hash(op.Key), cost: 1}
	p.add(&op, &s.policies.Get(id).Plan)
	f := &flight{done: make(chan struct{}), cancel: func() {}}
	f.add([]headgate.Op{op}, &p, s.beginFlight(&p), 1, 0, 10)
	f.decisions = make([]headgate.Decision, 1)
	s.flights.slotOf(&p).flight = f
	_ = s.source.Grant(t.Context(), f.ops, f.least, f.decisions)
	s.land(f, &f.grants[0], time.Hour, time.Hour)
	s.refill([]headgate.Op{op}, &p) // The flight has landed, and is still in its slot.
	s.flights.end(f)
	set := s.table.setOf(p.tag)
	if pl := set.find(p.tag, &p.shape); pl == nil || pl.flying {
		t.Error("refill waits for a flight that has ended: the key gets no further stash, and its place is never freed")
	}
}
