package guard

import (
	"context"
	"fmt"
	"hash/maphash"
	"runtime"
	"time"

	"github.com/headgate/headgate"
)

// KeyState is what one key has used of each limit, at a time of the store's clock.
type KeyState struct {
	// ID names the key in every instance, as BanEntry.ID does. Rule is the name of its rule, or of the limit in the tree of a
	// domain, and Key is its key in readable form.
	ID, Rule, Key string
	Mode          Mode
	// Override is the value of the override whose limits apply; "" without one.
	Override string
	// Stated reports that requests of the rule may state another limit: see Rule.LimitsFrom. Limits are those of requests that state
	// none.
	Stated bool
	Limits []LimitState
	// InFlight are the requests in flight of the key; nil for a rule without that bound.
	InFlight *SlotState
	// Ban is the ban in force; nil without one.
	Ban *BanEntry
	// EarlierBans counts the bans by which the next one is longer, with Ban.Growth: at most one for each of Ban.Lengths. A ban in force
	// counts too.
	EarlierBans int
	At          headgate.Instant
}

// LimitState is what a key has used of one limit.
type LimitState struct {
	// Policy is the name of the limit, as in Result.Policy.
	Policy    string
	Algorithm headgate.Algorithm
	Limit     headgate.Limit
	// Used and Remaining are units. Together they are what the limit admits at once. Units that an instance has taken ahead of need
	// (prefetch) are used.
	Used, Remaining int64
	// Next is the time until the next unit, and Full the time until all units are back. Both are 0 if they are there.
	Next, Full time.Duration
	// Never reports that the limit never admits a unit.
	Never bool
}

// SlotState is how many requests of a key are in flight.
type SlotState struct{ Used, Limit int64 }

// Peek reads what a key has used of each limit of its rule, and takes no units. The limits are read together, as far as the store
// decides a group at one time. The error is one of the store, or a *KeyNameError.
func (g *Guard) Peek(ctx context.Context, name KeyName) (*KeyState, error) {
	k, err := g.named(&name)
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(k.set) // Its limits stay prepared.
	return k.peek(ctx)
}

// peek reads each limit at cost 0, for what is used, and at cost 1, for the time of the next unit.
func (k *namedKey) peek(ctx context.Context) (*KeyState, error) {
	g := k.set.guard
	state := &KeyState{
		ID: banID(k.own), Rule: k.from.Name, Key: k.text, Mode: k.from.Mode, Override: k.override, Stated: k.from.stated != nil,
	}
	var counted []*window
	for i := range k.windows {
		if w := &k.windows[i]; w.kind == kindLimit || w.kind == kindHard {
			counted = append(counted, w)
		}
	}
	var ops []headgate.Op
	for cost := range int64(2) {
		for _, w := range counted {
			ops = append(ops, headgate.Op{
				Key: k.key, Policy: w.id, Window: w.number, Group: uint8(cost), Kind: headgate.Peek, Cost: cost, Edges: w.edges(g, false),
			})
		}
	}
	banned, err := k.from.banPolicy(g)
	if err != nil {
		return nil, err
	}
	ops = append(ops, headgate.Op{Key: k.key, Policy: banned, Window: banWindow, Group: 1, Kind: headgate.Peek})
	decided := make([]headgate.Decision, len(ops))
	if err := g.store.Apply(ctx, ops, decided); err != nil {
		return nil, fmt.Errorf("guard: the key was not read: %w", err)
	}
	state.At = decided[0].At
	for i, w := range counted {
		d, next := &decided[i], &decided[len(counted)+i]
		state.Limits = append(state.Limits, LimitState{
			Policy: w.policy, Algorithm: w.algorithm, Limit: w.limit, Used: max(0, d.Limit-d.Remaining), Remaining: d.Remaining,
			Next: next.RetryAfter, Full: max(d.ResetAfter, next.RetryAfter), // The store may decide the two one after the other.
			Never: next.Reason == headgate.Never,
		})
	}
	state.Ban = k.banOf(&decided[len(decided)-1])
	if state.EarlierBans, err = k.earlierBans(ctx); err != nil {
		return nil, fmt.Errorf("guard: the earlier bans of the key were not read: %w", err)
	}
	return state, k.peekSlots(ctx, state)
}

// earlierBans reads the bans by which the next one is longer.
func (k *namedKey) earlierBans(ctx context.Context) (int, error) {
	for i := range k.windows {
		if g := k.windows[i].growth; g != nil {
			return g.earlier(ctx, k.set.guard.store, k.from.growthKey(k.key), false)
		}
	}
	return 0, nil
}

// banOf describes the ban of a decision; nil without one.
func (k *namedKey) banOf(d *headgate.Decision) *BanEntry {
	if d.Reason != headgate.Banned {
		return nil
	}
	g := k.set.guard
	entry := BanEntry{
		ID: banID(k.own), Rule: k.from.Name, Key: k.text, Shadow: k.from.Mode == Shadow, Until: d.At.Add(d.RetryAfter).Time(),
		Operator: k.from.Ban.For == 0,
	}
	b := &g.state.bans
	b.mu.RLock()
	defer b.mu.RUnlock()
	if met, found := b.met[maphash.String(g.state.seed, k.key)]; found {
		met.update(d.At.Add(d.RetryAfter), entry.Shadow)
		met.describe(&entry)
	}
	return &entry
}

// peekSlots reads the requests in flight.
func (k *namedKey) peekSlots(ctx context.Context, state *KeyState) error {
	w := k.from.slots
	if w == nil {
		return nil
	}
	used, _, err := k.from.slotsUsed(ctx, k.key)
	if err == nil {
		state.InFlight = &SlotState{Used: used, Limit: w.limit.Count}
	}
	return err
}

// slotsUsed reads how many requests of a key are in flight. at is the time of the store; 0 from a store that does not say it.
func (p *prepared) slotsUsed(ctx context.Context, key string) (used int64, at headgate.Instant, err error) {
	slots := p.slotStores[0]
	d, err := slots.TakeSlot(ctx, headgate.SlotOp{
		Key: key, Window: slotsWindow, Limit: headgate.MaxUnits, TTL: DefaultInFlightTTL, Peek: true,
	})
	if err != nil {
		return 0, 0, fmt.Errorf("guard: the requests in flight were not read: %w", err)
	}
	slots.FreeSlot(d.Receipt) // A store that does not know Peek has taken one.
	if used = headgate.MaxUnits - d.Remaining; !d.Receipt.Empty() {
		used--
	}
	return used, d.At, nil
}
