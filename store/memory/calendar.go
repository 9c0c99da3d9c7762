package memory

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// A key that counts in windows of the calendar has its Ended counts in places beside that of its
// cell, so that a place has 32 bytes for all algorithms. Their tags differ in the bits of ages.
// Such a place has a Cell of its own and becomes void by itself. It evicts no other state, and is
// evicted before most cells, because without a change of the settings no request needs it.
const (
	ageShift = 8
	ages     = 3 << ageShift
)

// loadEnded reads the Ended counts of the turn's key into its draw, with one search.
func (s *Store) loadEnded(t *turn) {
	t.draw.Ended = limit.Ended{}
	run, at := s.table.run(t.at), t.at.home
	for range reach {
		if at >= uint64(len(run)) {
			at -= uint64(len(run))
		}
		p := &run[at]
		if p.tag == 0 {
			return
		}
		if age := (p.tag ^ t.at.tag) >> ageShift; age-1 < uint64(len(t.draw.Ended)) && p.tag&^ages == t.at.tag &&
			(p.names(t.id) || s.planOf(p).Family() == t.plan.Family()) {
			t.draw.Ended[age-1] = limit.Count{Time: p.cell.Time, Units: p.cell.Units}
		}
		at++
	}
}

// keepEnded writes the Ended counts of the turn's draw. A count is lost if all places that the key may
// have are in use. The turns of the group keep their places.
func (s *Store) keepEnded(t *turn, group []turn) {
	for i, n := range t.draw.Ended {
		aged := *t
		aged.at.tag |= uint64(i+1) << ageShift
		aged.beside = t.place
		p := s.find(aged.at, t.id, t.plan)
		if p == nil && n.Units > 0 {
			p = s.placeFor(&aged, group)
		}
		if p != nil {
			p.cell.Time, p.cell.Units, p.cell.Policy = n.Time, n.Units, uint16(t.id)
		}
	}
}

// returnToCalendar returns the units of r to the cell or to an Ended count.
func (s *Store) returnToCalendar(at spot, p *place, r *headgate.Receipt, plan *limit.Plan) {
	t := turn{plan: plan, id: r.Policy, at: at, place: p, now: s.clock.Now()}
	s.loadEnded(&t)
	if plan.ReturnCell(&p.cell, &t.draw.Ended, r, t.now) {
		s.keepEnded(&t, nil)
	}
}
