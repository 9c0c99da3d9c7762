package guard

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/internal/refusals"
)

// recall is what the memory of refusals knows about one descriptor of a call.
type recall struct {
	place   refusals.Place
	refusal refusals.Refusal
	refuses bool
}

// recallAll looks for the counters of all descriptors. The memory refuses nothing in a call that gives
// units back, because these may be for another of its descriptors. With together, the descriptors are one group: the memory
// decides all of them or none, because a refusal changes what the store counts for the others.
func (c *treeCall) recallAll() {
	memory := c.set.refusals
	if memory == nil {
		return
	}
	c.began = c.set.guard.state.queues.now()
	c.recalled = c.batch.recalls(len(c.answers))
	found, asked, refunds := 0, 0, false
	for i := range c.answers {
		if len(c.answers[i].Results) > 0 {
			asked++
		}
		refunds = refunds || c.requests[i].Kind == headgate.Refund
		if c.recalled[i] = c.recall(memory, i); c.recalled[i].refuses {
			found++
		}
	}
	if refunds || c.together && found < asked {
		for i := range c.recalled {
			c.recalled[i].refuses = false
		}
		found = 0
	}
	memory.Asked(found, asked-found)
}

// recall looks for the counter of one descriptor. The store decides about descriptors with several
// limits: a refusal by one of them shows how much the others have left.
func (c *treeCall) recall(memory *refusals.Table, i int) (known recall) {
	a := &c.answers[i]
	if len(a.Results) != 1 || !a.Results[0].window.countsFirst || a.Results[0].mode == headgate.Refund ||
		a.Results[0].window.calendar != nil { // The end of a window of the calendar can move.
		return known
	}
	r := &a.Results[0]
	var found bool
	known.place, known.refusal, found = memory.Find(r.key, r.Limit.Per, c.began)
	known.refuses = found && (known.refusal.Count > r.Limit.Count || r.cost > 0 && known.refusal.Count == r.Limit.Count)
	return known
}

// refused sets the decision of a descriptor that the memory refuses, as the store would decide. It
// reports whether it did.
func (c *treeCall) refused(i int) bool {
	if len(c.recalled) == 0 || !c.recalled[i].refuses {
		return false
	}
	r, left := &c.answers[i].Results[0], c.recalled[i].refusal.Left
	r.op, r.Recalled = opDecided, true
	r.Decision = headgate.Decision{
		Verdict: headgate.Deny, Reason: headgate.OverLimit, Limit: r.Limit.Count,
		RetryAfter: left, ResetAfter: left, At: c.recalled[i].refusal.End.Add(-left),
	}
	if r.cost > r.Limit.Count {
		r.Decision.Reason, r.Decision.RetryAfter = headgate.Never, 0
	}
	return true
}

// learn remembers what the store has decided about one descriptor. A counter that counts first is above
// its limit after a refusal, and stays so until its window ends or units are given back.
func (c *treeCall) learn(i int) {
	if len(c.recalled) == 0 {
		return
	}
	a := &c.answers[i]
	for j := range a.Results {
		r := &a.Results[j]
		switch {
		case r.mode == headgate.Refund:
			c.set.refusals.Lift(r.key, r.Limit.Per)
		case r.Recalled || r.Fallback || r.Decision.Verdict != headgate.Deny || r.window.calendar != nil:
		default:
			end := r.Decision.At - r.Decision.At%headgate.Instant(r.Limit.Per) + headgate.Instant(r.Limit.Per)
			c.recalled[i].place.Learn(refusals.Refusal{Count: r.Limit.Count + 1, End: end, Left: end.Sub(r.Decision.At)}, c.began)
		}
	}
}

// recalls gives room for what the memory knows about the descriptors of a call.
func (b *batch) recalls(n int) []recall {
	if cap(b.recalled) < n {
		b.recalled = make([]recall, n)
	}
	b.recalled = b.recalled[:n]
	return b.recalled
}

// refusalsOf gives the memory of refusals with a size in bytes; nil without one. A memory outlives
// reloads that keep its size.
func (s *State) refusalsOf(bytes int64) *refusals.Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusedBytes != bytes {
		s.refusedBytes, s.refused = bytes, nil
		if bytes > 0 {
			s.refused = refusals.New(bytes)
		}
	}
	return s.refused
}

// Refusals gives the counters of the memory of refusals; see Config.RefusalsMemory.
func (g *Guard) Refusals() RefusalStats {
	s := g.now()
	if s == nil {
		return RefusalStats{}
	}
	return s.refusals.Stats()
}
