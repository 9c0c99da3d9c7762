package guard

import (
	"context"
	"strconv"
	"unsafe"

	"github.com/headgate/headgate"
)

// spending reserves units in steps while the events of an answer pass, for the enforced rules with StopAnswer.
type spending struct {
	ticket *Ticket // nil if no rule stops answers
	ops    []headgate.Op
	made   []headgate.Decision
	// refusedBy is the rule that refused a step; nil before.
	refusedBy *reserved
	refusal   headgate.Decision
	stopped   bool // the answer has been ended
}

// stepsOfLimit is how many steps a limit has. More steps stop an answer closer to its limit, and query the store more often.
const stepsOfLimit = 10

// Stops reports whether Write may end the answer.
func (s *Scan) Stops() bool { return s.spending.ticket != nil }

// spend reserves units for what has passed with b, and gives the results of Write.
func (s *Scan) spend(b []byte) (keep int, stop bool) {
	at := s.answer.Boundary()
	if at < 0 || s.answer.Ended() {
		return len(b), false
	}
	for i := range s.reserved {
		k := &s.reserved[i]
		if s.spending.refusedBy != nil || !k.stops {
			continue
		}
		_, model := s.counts(k.prepared.SettleBody)
		if missing := k.input + s.passed(k.prepared.SettleBody, model) - k.taken; missing > 0 && !s.reserve(k, missing) {
			s.spending.refusedBy = k
		}
	}
	if s.spending.refusedBy == nil {
		return len(b), false
	}
	s.spending.stopped = true
	s.spending.refusedBy.prepared.places.tokens.stopped.Add(1)
	return at, true
}

// reserve takes the steps that cover missing units from every limit of a rule. It returns false if a limit refuses them. If the store does
// not answer, the answer goes on, and the end charges it.
func (s *Scan) reserve(k *reserved, missing int64) bool {
	t, p := s.spending.ticket, &s.spending
	e := t.ending
	units := (missing + k.step - 1) / k.step * k.step
	p.ops = p.ops[:0]
	for i := range e.charges {
		c := &e.charges[i]
		if c.prepared != k.prepared || c.window.kind == kindBan {
			continue
		}
		key := e.keys[c.from:c.to]
		op := headgate.Op{
			Key:    unsafe.String(unsafe.SliceData(key), len(key)), //nolint:gosec // The store reads it during Apply.
			Policy: c.window.id, Window: c.window.number, Cost: units, Edges: c.window.edges(t.guard, e.local != nil),
		}
		if e.local != nil {
			op.Policy = c.window.local
		}
		p.ops = append(p.ops, op)
	}
	if len(p.ops) == 0 || s.take(e) != nil {
		k.taken += units // Without receipts: the end charges the units.
		return true
	}
	for i := range p.made {
		if p.made[i].Verdict == headgate.Deny {
			p.refusal = p.made[i]
			return false
		}
	}
	s.note(k)
	k.taken += units
	return true
}

// take has the store decide the ops, within its budget.
func (s *Scan) take(e *ending) error {
	t, p := s.spending.ticket, &s.spending
	store := t.guard.store
	if e.local != nil {
		store = e.local
	}
	if cap(p.made) < len(p.ops) {
		p.made = make([]headgate.Decision, len(p.ops))
	}
	p.made = p.made[:len(p.ops)]
	ctx := context.Background()
	if timeout := t.set.config.StoreTimeout; timeout > 0 {
		bounded, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		ctx = bounded
	}
	return store.Apply(ctx, p.ops, p.made) //nolint:wrapcheck // The error is only compared with nil.
}

// note keeps the receipts of a step with the charges of the rule, which are in the order of the decisions.
func (s *Scan) note(k *reserved) {
	e, n := s.spending.ticket.ending, 0
	for i := range e.charges {
		c := &e.charges[i]
		if c.prepared == k.prepared && c.window.kind != kindBan {
			c.steps = append(c.steps, s.spending.made[n].Receipt)
			n++
		}
	}
}

// returnSteps returns what the steps of an answer took beyond its cost. It gives the units of the steps that stay.
func (w *settlement) returnSteps(c *charge, cost int64) (kept int64) {
	before := c.receipt.Cost
	for i := range c.steps {
		r := c.steps[i]
		keep := min(max(0, cost-before), r.Cost)
		if before += r.Cost; keep < r.Cost {
			c.prepared.places.settled.returned.Add(uint64(r.Cost - keep))
			r.Kept = keep
			w.receipts = append(w.receipts, r)
		}
		kept += keep
	}
	return kept
}

// AppendEnd appends the event that ends a stopped answer: the error event of its API.
func (s *Scan) AppendEnd(dst []byte) []byte {
	k := s.spending.refusedBy
	if k == nil {
		return dst
	}
	text := append([]byte("The limit of rule "), k.prepared.Name...)
	text = append(text, " was reached during this answer"...)
	if wait := s.spending.refusal.RetryAfter; wait > 0 {
		text = append(text, ": retry in "...)
		text = strconv.AppendInt(text, int64((wait+1e9-1)/1e9), 10)
		text = append(text, " s"...)
	}
	return k.prepared.SettleBody.For(s.path).ErrorEvent(dst, string(append(text, '.')))
}
