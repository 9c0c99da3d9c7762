package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// DefaultInFlightTTL is the time after which a shared store frees the slots of a process that no
// longer renews them. A process renews its slots each third of this time.
const DefaultInFlightTTL = 10 * time.Second

// slot is one place in flight that a request holds until its end.
type slot struct {
	store   headgate.SlotStore
	receipt headgate.Receipt
	places  *places
}

// addSlots prepares the bound of requests in flight of a rule.
func (g *Guard) addSlots(c *Config, p *prepared) error {
	r := p.Rule
	switch {
	case r.InFlight < 0 || r.InFlight > headgate.MaxUnits || r.InFlightTTL < 0:
		return fmt.Errorf("in_flight %d or in_flight_ttl %v is out of range: use 1 or more, and a time above 0", r.InFlight, r.InFlightTTL)
	case r.InFlight == 0:
		return nil
	}
	stores := []headgate.Store{g.store}
	if r.Fallback == FallbackLocal {
		stores = append(stores, c.Local)
		if p.slotsPart = partOf(r.InFlight, c.LocalShare); p.slotsPart == 0 {
			return fmt.Errorf("in_flight %d x %d%% is less than one request: raise local_share to %d%% or use deny",
				r.InFlight, c.LocalShare, leastShare(r.InFlight))
		}
	}
	for i, store := range stores {
		slots, ok := headgate.SlotsOf(store)
		if !ok {
			return errNoSlots
		}
		p.slotStores[i] = slots
	}
	p.slots = &window{
		policy: r.Name + "-in-flight", kind: kindSlots, limit: headgate.Limit{Count: r.InFlight}, number: slotsWindow,
	}
	return nil
}

var errNoSlots = errors.New("its store cannot count requests in flight (in_flight): use a store in memory or on Redis")

// addSlot adds the Result for the slot of a request. takeSlots decides it after all other limits.
func (a *Answer) addSlot(p *prepared, key string, shared bool) {
	r := a.nextResult()
	w := p.slots
	*r = Result{
		Rule: p.Rule, Policy: w.policy, Limit: w.limit, Number: p.number, Shared: shared, window: w, from: p, key: key, op: opDecided,
		Decision: headgate.Decision{Reason: headgate.WithinLimit, Limit: w.limit.Count, Remaining: w.limit.Count},
	}
	a.held = true
}

// takeSlots takes the slots of a request that the limits allow, or that waits for its departure.
// The first enforced refusal frees the others, and refuses the request.
func (t *Ticket) takeSlots(ctx context.Context) {
	a := t.Answer
	for i := range a.Results {
		r := &a.Results[i]
		if r.window == nil || r.window.kind != kindSlots {
			continue
		}
		t.takeSlot(ctx, r)
		if r.Decision.Verdict == headgate.Deny && r.Enforced() {
			t.ending.freeSlots()
			a.Verdict, a.closest = headgate.Deny, i
			t.guard.abandon(t.set, a)
			return
		}
	}
}

// takeSlot decides one bound. Without an answer of the store, the rule's fallback decides.
func (t *Ticket) takeSlot(ctx context.Context, r *Result) {
	a, p := t.Answer, r.from
	asked := headgate.SlotOp{Key: r.key, Window: slotsWindow, Limit: r.Limit.Count, TTL: r.Rule.InFlightTTL}
	if asked.TTL == 0 {
		asked.TTL = DefaultInFlightTTL
	}
	bounded, end := t.set.bound(ctx)
	d, err := p.slotStores[0].TakeSlot(bounded, asked)
	end()
	store := p.slotStores[0]
	if err != nil {
		r.Fallback = true
		switch left := errors.Is(ctx.Err(), context.Canceled); {
		case left:
			a.StoreError = callerGone(err)
			d = headgate.Undecided()
		case r.Rule.Fallback == FallbackLocal:
			a.StoreError = errors.Join(a.StoreError, err)
			store, asked.Limit, r.Limit.Count = p.slotStores[1], p.slotsPart, p.slotsPart
			if d, err = store.TakeSlot(ctx, asked); err != nil {
				d = headgate.Undecided()
			}
		default:
			a.StoreError = errors.Join(a.StoreError, err)
			d = unavailable(r)
		}
	}
	r.Decision = d
	if !d.Receipt.Empty() {
		p.places.holding.Add(1)
		t.ending.slots = append(t.ending.slots, slot{store, d.Receipt, p.places})
		r.Decision.Receipt = headgate.Receipt{} // The slot is given back by ending alone.
	}
}

// freeSlots gives back the slots.
func (e *ending) freeSlots() {
	for i := range e.slots {
		s := &e.slots[i]
		s.places.holding.Add(-1)
		s.store.FreeSlot(s.receipt)
	}
	clear(e.slots)
	e.slots = e.slots[:0]
}

// InFlight gives the number of slots that requests of this process hold under a rule with InFlight.
func (g *Guard) InFlight(ruleName string) int64 {
	if g.now() == nil {
		return 0
	}
	return g.state.holdingFor(ruleName)
}
