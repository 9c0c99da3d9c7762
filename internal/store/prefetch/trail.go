package prefetch

import "sync/atomic"

// mark maps each receipt that the source gave a group to its key.
func (s *Store) mark(g *group) {
	if !g.local || s.denyFor < 0 {
		return
	}
	for i := range g.parts {
		p := &g.parts[i]
		for j := range p.n {
			if r := &g.decisions[p.from+j].Receipt; !r.Empty() {
				s.trail.note(r.Nonce, p.tag)
			}
		}
	}
}

// trail maps the latest receipts of the source to their keys. Older receipts are dropped. A
// refusal that the Return of a dropped receipt would lift lasts up to DenyFor.
type trail struct{ slots []trailSlot }

// trailSlot holds a tag, and a nonce mixed with the tag. If two writers mix up their halves,
// the halves do not match.
type trailSlot struct{ mixed, tag atomic.Uint64 }

func newTrail(keys int) trail {
	n := 64
	for n < keys && n < 1<<16 {
		n *= 2
	}
	return trail{slots: make([]trailSlot, n)}
}

func (t *trail) slot(nonce uint64) *trailSlot {
	return &t.slots[nonce*0x9e3779b97f4a7c15>>32&uint64(len(t.slots)-1)]
}

func (t *trail) note(nonce, tag uint64) {
	sl := t.slot(nonce)
	sl.mixed.Store(nonce ^ tag)
	sl.tag.Store(tag)
}

func (t *trail) find(nonce uint64) uint64 {
	sl := t.slot(nonce)
	if tag := sl.tag.Load(); sl.mixed.Load()^tag == nonce {
		return tag
	}
	return 0
}
