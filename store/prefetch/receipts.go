package prefetch

import (
	"context"

	"github.com/headgate/headgate"
)

// receipt makes the receipt of op i of n that one take from a stash served. Place
// holds this store's random number, which no receipt of the source's has there, and the key's tag.
func (s *Store) receipt(r *headgate.Receipt, op *headgate.Op, nonce, tag uint64, i, n int, at headgate.Instant) {
	if nonce == 0 {
		*r = headgate.Receipt{}
		return
	}
	r.Nonce, r.Place[0], r.Place[1] = nonce+uint64(i), s.id, tag
	r.Cost, r.From, r.FromPart = op.Cost, at, 0
	r.Policy, r.Returned = op.Policy, uint32(n<<8|i)
}

// Return implements headgate.Store. What a stash has served goes back to it, when
// the receipts of all ops of its key are returned, as long as the stash is valid and here;
// after that it stays counted. Other receipts are the source's.
func (s *Store) Return(ctx context.Context, receipts []headgate.Receipt) error {
	if !s.made() {
		return headgate.ErrNotMade
	}
	theirs := make([]headgate.Receipt, 0, len(receipts))
	for i := range receipts {
		switch r := &receipts[i]; {
		case r.Empty():
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
			s.pardon(tag)
		}
	}
	return nil
}

// takeBack returns a receipt of ours, once.
func (s *Store) takeBack(r *headgate.Receipt) {
	n, i := int(r.Returned>>8), int(r.Returned&0xff)
	if n < 1 || n > maxOps || i >= n || r.Cost < 1 || !s.ledger.enter(r.Nonce-uint64(i), i, n) {
		return
	}
	if s.giveBack(r.Place[1], r.Nonce, r.Cost) {
		s.counts.returned.Add(uint64(r.Cost))
	}
	s.pardon(r.Place[1])
}

// giveBack puts units back into the stash that served them, if it is still there.
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

// putBackAll undoes what the parts of a group have spent; what flights keep for it, if kept.
func (s *Store) putBackAll(g *group, kept bool) {
	for i := range g.parts {
		if p := &g.parts[i]; p.took && (kept || !p.kept) {
			p.took = false
			s.giveBack(p.tag, p.nonce, p.cost)
		}
	}
}

// pardon drops what is known of refusals of a key.
func (s *Store) pardon(tag uint64) {
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

// ReturnLast implements headgate.LastReturner, for what the source has booked. Nothing
// is booked out of units that were taken ahead.
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
		s.pardon(tag)
	}
	return true, nil
}
