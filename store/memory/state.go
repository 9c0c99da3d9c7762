package memory

import (
	"math"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// turn is one Op at its key's place; the lock of the place's shard is held.
type turn struct {
	plan  *limit.Plan
	id    headgate.PolicyID
	at    spot
	place *place
	now   headgate.Instant
	cost  int64
	mode  headgate.Mode
	// draw is what was judged of a cell.
	draw limit.Draw
}

// pinned is the Time of a place with a block whose turn has not ended: no search
// for room may take it for void.
const pinned = headgate.Instant(math.MaxInt64)

// begin makes the place ready for the turn: it is pinned, and a state that was
// kept under another policy is carried over.
func (s *Store) begin(t *turn) {
	p := t.place
	if headgate.PolicyID(p.cell.Policy) != t.id && !t.plan.Blocks() {
		if !s.planOf(p).InCell() {
			p.cell.Time = pinned
		}
		s.carry(t)
	}
	if !t.plan.InCell() {
		p.cell.Time = pinned
	}
}

// end unpins the place.
func (s *Store) end(t *turn) {
	if !t.plan.InCell() {
		t.place.cell.Time = s.blockFreeAt(t.plan, t.place)
	}
}

// judge decides the turn into d and takes nothing. If what passes needs room
// that there is not, d says StoreFull.
func (s *Store) judge(t *turn, d *headgate.Decision) {
	switch t.plan.Policy.Algorithm {
	case headgate.SlidingLog:
		s.judgeLog(t, d)
	case headgate.SlidingWindow:
		s.judgeWindows(t, d)
	default:
		t.plan.JudgeCell(&t.place.cell, t.now, t.cost, t.mode, &t.draw)
		t.plan.Explain(&t.draw, d)
	}
}

// take counts what judge has just decided.
func (s *Store) take(t *turn, d *headgate.Decision) {
	switch t.plan.Policy.Algorithm {
	case headgate.SlidingLog:
		log := s.openLog(t.place)
		t.plan.TakeLog(&log, d)
		s.closeLog(t.place, &log)
	case headgate.SlidingWindow:
		w := s.openWindows(t.plan, t.place)
		t.plan.TakeWindows(&w, d)
		s.closeWindows(t.place, &w)
	default:
		t.plan.TakeCell(&t.place.cell, &t.draw)
		t.plan.Receipt(&t.draw, &d.Receipt)
	}
}

// restore gives back what r took from p, which is kept under plan.
func (s *Store) restore(plan *limit.Plan, p *place, r *headgate.Receipt) {
	if !plan.InCell() && p.cell.Units == 0 {
		return
	}
	switch plan.Policy.Algorithm {
	case headgate.SlidingLog:
		log := s.openLog(p)
		plan.ReturnLog(&log, r, s.clock.Now())
		s.closeLog(p, &log)
		p.cell.Time = s.blockFreeAt(plan, p)
	case headgate.SlidingWindow:
		w := s.openWindows(plan, p)
		plan.ReturnWindows(&w, r)
		s.closeWindows(p, &w)
		p.cell.Time = s.blockFreeAt(plan, p)
	default:
		plan.ReturnCell(&p.cell, r, s.clock.Now())
	}
}

// freeAt gives the instant from which p holds nothing that counts.
func (s *Store) freeAt(p *place) headgate.Instant {
	if plan := s.planOf(p); plan.InCell() {
		return plan.CellFreeAt(&p.cell)
	}
	return p.cell.Time
}

// limited reports whether p would refuse a request of one unit at now.
func (s *Store) limited(p *place, now headgate.Instant) bool {
	var d headgate.Decision
	s.judge(&turn{plan: s.planOf(p), place: p, now: now, cost: 1, mode: headgate.Peek}, &d)
	return d.Verdict == headgate.Deny
}

// release leaves p void and gives its block back.
func (s *Store) release(p *place) {
	if !s.planOf(p).InCell() && p.cell.Units != 0 {
		s.blocks.free(p.cell.Units, s.lentWords(p))
	}
	p.cell = limit.Cell{Policy: p.cell.Policy, Epoch: p.cell.Epoch + 1}
}

// carry restates what the place holds for the policy of the turn.
func (s *Store) carry(t *turn) {
	old := s.planOf(t.place)
	switch {
	case old.Policy.Algorithm != t.plan.Policy.Algorithm:
		s.release(t.place)
	case t.plan.Policy.Algorithm == headgate.SlidingWindow:
		if !s.carryWindows(t, old) {
			// The old limit goes on until there is room for the new one's counters.
			t.plan, t.id = old, headgate.PolicyID(t.place.cell.Policy)
			return
		}
		t.place.cell.Epoch++
	case t.plan.Policy.Algorithm == headgate.SlidingLog: // Judging is all it needs.
		t.place.cell.Epoch++
	default:
		t.plan.CarryCell(&t.place.cell, old, t.now)
	}
	t.place.cell.Policy = uint16(t.id)
}

// storeFull decides an Op for which there is no room.
func (s *Store) storeFull(t *turn, d *headgate.Decision) {
	s.refused.Add(1)
	*d = headgate.Decision{Verdict: s.onFull, Reason: headgate.StoreFull, Limit: limit.Room(t.plan.Policy), At: t.now}
}
