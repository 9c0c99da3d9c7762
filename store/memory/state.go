package memory

import (
	"math"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// turn is one Op at the place of its key. The lock of the place's shard is held.
type turn struct {
	plan  *limit.Plan
	id    headgate.PolicyID
	at    spot
	place *place
	now   headgate.Instant
	cost  int64
	mode  headgate.OpKind
	// draw is the decision on a cell, and has the edges of the Op.
	draw limit.Draw
	// beside is another place of the key, which a search for a place leaves alone.
	beside *place
	// room is the time at which a search that failed would find a place or a block.
	room headgate.Instant
}

// pinned is the Time of a place with a block while a turn uses the place. No search for
// memory takes the place for void.
const pinned = headgate.Instant(math.MaxInt64)

// begin pins the place if its state is in a block.
func (s *Store) begin(t *turn) {
	if !t.plan.InCell() {
		t.place.cell.Time = pinned
	}
}

// end unpins the place. For a calendar, it keeps counts that have ended.
func (s *Store) end(t *turn, group []turn) {
	switch {
	case !t.plan.InCell():
		t.place.cell.Time = s.blockFreeAt(t.plan, t.place)
	case t.draw.EndedChanged():
		s.keepEnded(t, group)
	}
}

// judge decides the turn into d and takes nothing. d says StoreFull when the state needs a
// block and none is free.
func (s *Store) judge(t *turn, d *headgate.Decision) {
	switch t.plan.Policy.Algorithm {
	case headgate.SlidingLog:
		s.judgeLog(t, d)
	case headgate.SlidingWindow:
		s.judgeWindows(t, d)
	default:
		if t.plan.Calendar() {
			s.loadEnded(t)
		}
		t.plan.JudgeOf(&t.place.cell, s.planOf(t.place), t.now, t.cost, t.mode, &t.draw)
		t.plan.Explain(&t.draw, d)
	}
}

// take counts the last decision of judge. The state is kept under the turn's policy from
// then on, unless the cost is 0.
func (s *Store) take(t *turn, d *headgate.Decision) {
	switch t.plan.Policy.Algorithm {
	case headgate.SlidingLog:
		log := s.openLog(t.place)
		t.plan.TakeLog(&log, t.now, d)
		s.closeLog(t.place, &log)
	case headgate.SlidingWindow:
		s.takeWindows(t, d)
	default:
		plan := s.planOf(t.place)
		if t.plan.TakeOf(&t.place.cell, plan, &t.draw) {
			t.place.cell.Policy = uint16(t.id)
		}
		t.plan.Receipt(&t.draw, &d.Receipt)
		return
	}
	t.place.cell.Policy = uint16(t.id)
}

// restore returns the units of r to p, the place of a key at its spot.
func (s *Store) restore(at spot, p *place, r *headgate.Receipt) {
	plan := s.planOf(p)
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
		for at, n := s.nextRing(p, 0); n > 0; at, n = s.nextRing(p, at) {
			w := s.openRing(p, at, n)
			plan.ReturnWindows(&w, r)
			s.closeRing(p, at, &w)
		}
		p.cell.Time = s.blockFreeAt(plan, p)
	default:
		if issuer := &s.policies.Issuer(r.Policy).Plan; issuer.Calendar() {
			s.returnToCalendar(at, p, r, issuer)
		} else {
			issuer.ReturnCell(&p.cell, nil, r, s.clock.Now())
		}
	}
}

// giveUnits gives the cost of the turn back. It reports whether any units came back, and for a fixed
// window their number.
func (s *Store) giveUnits(t *turn) (units int64, given bool) {
	p := t.place
	switch t.plan.Policy.Algorithm {
	case headgate.SlidingLog:
		log := s.openLog(p)
		given := t.plan.RefundLog(&log, t.now, t.cost)
		s.closeLog(p, &log)
		return 0, given
	case headgate.SlidingWindow:
		for at, n := s.nextRing(p, 0); n > 0; at, n = s.nextRing(p, at) {
			w := s.openRing(p, at, n)
			given = t.plan.RefundWindows(&w, t.now, t.cost) || given
			s.closeRing(p, at, &w)
		}
		return 0, given
	default:
		if t.plan.Calendar() {
			s.loadEnded(t)
		}
		units, given = t.plan.RefundCell(&p.cell, s.planOf(p), t.now, t.cost, &t.draw)
		if t.draw.EndedChanged() {
			s.keepEnded(t, nil)
		}
		return units, given
	}
}

// chargeUnits counts up to the cost of the turn, and returns the number of units. full reports that
// there was no block for the state, and that d says so.
func (s *Store) chargeUnits(t *turn, d *headgate.Decision) (units int64, full bool) {
	p := t.place
	switch t.plan.Policy.Algorithm {
	case headgate.SlidingLog:
		log := s.openLog(p)
		if !log.Room() && !s.growLog(t, &log) {
			s.storeFull(t, d)
			return 0, true
		}
		log = s.openLog(p)
		units = t.plan.ChargeLog(&log, t.now, t.cost)
		s.closeLog(p, &log)
	case headgate.SlidingWindow:
		if units, full = s.chargeWindows(t, d); full {
			return 0, true
		}
	default:
		if t.plan.Calendar() {
			s.loadEnded(t)
		}
		var recorded bool
		if units, recorded = t.plan.ChargeCell(&p.cell, s.planOf(p), t.now, t.cost, &t.draw); recorded {
			p.cell.Policy = uint16(t.id)
		}
		return units, false
	}
	p.cell.Policy = uint16(t.id)
	return units, false
}

// freeAt gives the instant at which the last counted unit in p expires.
func (s *Store) freeAt(p *place) headgate.Instant {
	if plan := s.planOf(p); plan.InCell() {
		return plan.CellFreeAt(&p.cell)
	}
	return p.cell.Time
}

// limitedUntil gives the time from which p admits a request of one unit: now, or a later time if
// the key is limited. It is MaxInt64 for a limit that admits none.
func (s *Store) limitedUntil(p *place, now headgate.Instant) headgate.Instant {
	plan := s.planOf(p)
	switch {
	case p.tag&ages != 0 && plan.Calendar():
		return now
	case plan.InCell():
		return plan.CellPassesAt(&p.cell, now)
	case p.cell.Units == 0:
		return now
	case plan.Policy.Algorithm == headgate.SlidingLog:
		log := s.openLog(p)
		return plan.LogPassesAt(&log, now)
	}
	at := s.ringOf(p, plan.Policy.SubWindows)
	if at == 0 {
		return now // The policy of record always has a ring.
	}
	w := s.openRing(p, at, plan.Policy.SubWindows)
	defer s.closeRing(p, at, &w)
	return plan.WindowsPassAt(&w, now)
}

// blockFreeAt gives the instant at which the last counted unit in the block of p expires.
func (s *Store) blockFreeAt(plan *limit.Plan, p *place) headgate.Instant {
	switch {
	case p.cell.Units == 0:
		return 0
	case plan.Policy.Algorithm == headgate.SlidingLog:
		log := s.openLog(p)
		return plan.LogFreeAt(&log)
	default:
		free := headgate.Instant(0)
		for at, n := s.nextRing(p, 0); n > 0; at, n = s.nextRing(p, at) {
			w := s.openRing(p, at, n)
			free = max(free, plan.WindowsFreeAt(&w))
		}
		return free
	}
}

// blockBound gives the size, in words, of the largest block that one key of the plan needs.
func blockBound(plan *limit.Plan) int {
	switch plan.Policy.Algorithm {
	case headgate.SlidingLog:
		return minBlock << orderOf(logWords(plan.LogBound()+1))
	case headgate.SlidingWindow:
		return minBlock << orderOf(winRings+ringWords(plan.Policy.SubWindows))
	default:
		return 0
	}
}

// release makes p void and frees its block.
func (s *Store) release(p *place) {
	if !s.planOf(p).InCell() && p.cell.Units != 0 {
		s.blocks.free(p.cell.Units, s.lentWords(p))
	}
	p.cell.Void()
}

// storeFull decides an Op of a key without a place, or without a block. RetryAfter is the time until
// the search that has just failed finds room, if no other key takes it.
func (s *Store) storeFull(t *turn, d *headgate.Decision) {
	s.refused.Add(1)
	*d = headgate.Decision{Verdict: s.onFull, Reason: headgate.StoreFull, Limit: limit.Room(t.plan.Policy), At: t.now}
	if s.onFull == headgate.Deny && t.room != pinned {
		d.RetryAfter = max(t.room.Sub(t.now), 1)
	}
}
