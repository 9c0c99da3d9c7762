package guard

import (
	"context"
	"strconv"

	"github.com/headgate/headgate"
)

// ending is what the rules of a request need at its end: the slots that it holds, and the units whose
// number its outcome decides. Only requests of rules with InFlight, Count or Settle have one.
type ending struct {
	slots      []slot
	charges    []charge
	keys       []byte         // the keys of the charges
	local      headgate.Store // the store of the charges after a local fallback; nil means the guard's store
	usages     []countedUsage
	settlement settlement
	bytes      bool  // a rule counts the bytes of the request
	scan       *Scan // reads the answer; nil if no rule settles by its body
}

// charge is the units of one limit whose number the outcome decides.
type charge struct {
	prepared *prepared
	window   *window
	receipt  headgate.Receipt
	// from and to are the place of the key in ending.keys.
	from, to int
	usage    int                // the position in ending.usages; -1 for none
	steps    []headgate.Receipt // of what was reserved while the answer passed
}

// countedUsage is what Config.Meter has counted for one rule whose units the outcome decides.
type countedUsage struct {
	prepared *prepared
	usage    headgate.Usage // without the names
	// from and to are the place of the customer's name in ending.keys.
	from, to int
	extra    int // the position in settlement.extras, plus 1; 0 for none
}

// NeedsEnd gives the setting of a rule that needs the end of requests; "" for none.
func (r *Rule) NeedsEnd() string {
	switch {
	case r.InFlight > 0:
		return "in_flight"
	case len(r.Count) > 0:
		return "count"
	case r.Announced:
		return "cost"
	case r.Settles():
		return "settle"
	default:
		return ""
	}
}

// byOutcome reports whether the outcome of a request changes the number of its units.
func (r *Rule) byOutcome() bool { return len(r.Count) > 0 || r.Settles() }

// EndError says that a rule needs the end of each request, which Decide and DecideAll are not told.
type EndError struct {
	// Rule is the name of the rule. Setting is in_flight, count, cost or settle.
	Rule, Setting string
}

// Error gives the problem and the fix in one sentence.
func (e *EndError) Error() string {
	return "guard: " + e.Setting + " of rule " + strconv.Quote(e.Rule) + " needs the end of each request: " +
		"call Admit and Done in place of Decide"
}

// startEnding prepares the end of a request that the limits do not refuse, and takes its slots.
func (t *Ticket) startEnding(ctx context.Context) {
	t.ending = t.guard.state.ending()
	if t.Answer.held {
		t.takeSlots(ctx)
	}
	if t.Answer.Verdict == headgate.Deny {
		t.dropEnding()
	}
}

// dropEnding frees the slots of a request that is not made. Its units are returned elsewhere.
func (t *Ticket) dropEnding() {
	if e := t.ending; e != nil {
		t.ending = nil
		e.close(t.guard.state)
	}
}

// close frees the slots, and keeps the memory for another request.
func (e *ending) close(s *State) {
	e.freeSlots()
	clear(e.charges)
	e.charges, e.keys, e.local, e.bytes = e.charges[:0], e.keys[:0], nil, false
	if e.scan != nil {
		s.putScan(e.scan)
		e.scan = nil
	}
	clear(e.usages)
	e.usages = e.usages[:0]
	e.settlement.clear()
	s.endings.Put(e)
}

// endRules changes the units of an ended request by its outcome, and frees its slots.
func (t *Ticket) endRules(unmade bool, o *Outcome) {
	e := t.ending
	if e == nil {
		return
	}
	if !unmade {
		if t.Answer != nil { // Forward was not called.
			e.collect(t)
		}
		t.CloseScan(o)
		e.settle(t, o)
	}
	t.dropEnding()
}

// collect notes the units of a request that goes on to its handler.
func (e *ending) collect(t *Ticket) {
	a := t.Answer
	e.local = a.local
	for i := range a.Results {
		r := &a.Results[i]
		if r.counted && r.Rule.byOutcome() {
			e.collectUsage(a, i)
		}
		bans := r.window != nil && r.window.answers
		if r.from == nil || r.Decision.Receipt.Empty() && !bans || !r.Rule.byOutcome() {
			continue
		}
		c := charge{prepared: r.from, window: r.window, receipt: r.Decision.Receipt, from: len(e.keys), usage: -1}
		if r.from.SettleBody != nil {
			e.scanFor(t, r)
		}
		if n := len(e.usages) - 1; n >= 0 && e.usages[n].prepared == r.from {
			c.usage = n
		}
		e.bytes = e.bytes || r.Rule.Bytes != 0
		if r.Rule.Settles() || bans {
			e.keys = append(e.keys, r.key...)
		}
		c.to = len(e.keys)
		e.charges = append(e.charges, c)
	}
}

// collectUsage notes what Config.Meter has counted for the rule of result i.
func (e *ending) collectUsage(a *Answer, i int) {
	r := &a.Results[i]
	u := a.correction(a.Results[i:a.endOfRule(i)])
	from := len(e.keys)
	e.keys = append(e.keys, u.Customer...)
	u.Customer, u.Quota, u.Admitted, u.Metered = "", "", -u.Admitted, -u.Metered
	e.usages = append(e.usages, countedUsage{prepared: r.from, usage: u, from: from, to: len(e.keys)})
}
