package prefetch

import (
	"context"

	"github.com/headgate/headgate"
)

// receipt makes the receipt of op i of the n ops of one take from a stash. Place has the tag
// of the key, and a random number of this store. No receipt of the source has that number.
func (s *Store) receipt(r *headgate.Receipt, op *headgate.Op, nonce, tag uint64, i, n int, at headgate.Instant) {
	if nonce == 0 {
		*r = headgate.Receipt{}
		return
	}
	r.Nonce, r.Place[0], r.Place[1] = nonce+uint64(i), s.id, tag
	r.Cost, r.From, r.FromPart = op.Cost, at, 0
	r.Policy, r.Returned = op.Policy, uint32(n<<8|i)
}

// Return implements headgate.Store. Units from a stash return to the stash when the receipts
// of all ops of the key are returned and the stash is still valid. Otherwise the units stay
// counted, also those of a receipt of several ops with Kept. The source handles its own
// receipts.
func (s *Store) Return(ctx context.Context, receipts []headgate.Receipt) error {
	if !s.made() {
		return headgate.ErrNotMade
	}
	theirs := make([]headgate.Receipt, 0, len(receipts))
	for i := range receipts {
		switch r := &receipts[i]; {
		case r.Empty() || r.Units() == 0:
		case r.Place[0] == s.id:
			s.takeBack(r)
		default:
			theirs = append(theirs, *r)
		}
	}
	if len(theirs) == 0 {
		return nil
	}
	if err := s.source.Return(ctx, theirs); err != nil {
		return err
	}
	for i := range theirs {
		if tag := s.trail.find(theirs[i].Nonce); tag != 0 {
			s.forgetRefusals(tag)
		}
	}
	return nil
}

// takeBack returns a receipt of this store, once.
func (s *Store) takeBack(r *headgate.Receipt) {
	n, i := int(r.Returned>>8), int(r.Returned&0xff)
	if n < 1 || n > maxOps || i >= n || r.Cost < 1 || !s.ledger.enter(r.Nonce-uint64(i), i, n) {
		return
	}
	units := r.Units()
	if r.Kept != 0 && n > 1 {
		units = 0
	}
	if units > 0 && s.giveBack(r.Place[1], r.Nonce, units) {
		s.counts.returned.Add(uint64(units))
	}
	s.forgetRefusals(r.Place[1])
}

// giveBack returns units to the stash that served them. It reports false when the stash is
// gone.
func (s *Store) giveBack(tag, nonce uint64, cost int64) bool {
	t := s.table.setOf(tag)
	t.lock()
	defer t.unlock()
	for i := range t.tags {
		if t.tags[i] != tag {
			continue
		}
		for j := range t.places[i].stashes {
			st := &t.places[i].stashes[j]
			if st.nonce>>seqBits == nonce>>seqBits && cost <= st.units-st.left {
				st.left += cost
				return true
			}
		}
	}
	return false
}

// putBackAll returns the units that the keys of a group have spent. With kept, it also
// returns units that flights kept for the group.
func (s *Store) putBackAll(g *group, kept bool) {
	for i := range g.parts {
		if p := &g.parts[i]; p.taken && (kept || !p.kept) {
			p.taken = false
			s.giveBack(p.tag, p.nonce, p.cost)
		}
	}
}

// forgetRefusals drops the known refusals of a key.
func (s *Store) forgetRefusals(tag uint64) {
	t := s.table.setOf(tag)
	t.lock()
	defer t.unlock()
	t.lifted++
	for i := range t.tags {
		if t.tags[i] == tag {
			t.places[i].said.until = 0
		}
	}
}

// ReturnLast implements headgate.LastReturner for bookings at the source. Prefetched units
// are never booked.
func (s *Store) ReturnLast(ctx context.Context, r *headgate.Receipt) (returned bool, err error) {
	if !s.made() {
		return false, headgate.ErrNotMade
	}
	source, ok := s.source.(headgate.LastReturner)
	if !ok || r.Empty() || r.Place[0] == s.id {
		return false, nil
	}
	if returned, err = source.ReturnLast(ctx, r); !returned || err != nil {
		return returned, err
	}
	if tag := s.trail.find(r.Nonce); tag != 0 {
		s.forgetRefusals(tag)
	}
	return true, nil
}
