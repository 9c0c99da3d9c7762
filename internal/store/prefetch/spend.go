package prefetch

import (
	"time"

	"github.com/headgate/headgate"
)

// round spends the units that all keys of the group need, or none. Missing units are
// requested.
func (s *Store) round(g *group) {
	now := s.now()
	by, lacks, cold := -1, false, true
	for i := range g.parts {
		p := &g.parts[i]
		s.spend(g, p, now)
		if p.refused && by < 0 {
			by = i
		}
		lacks = lacks || p.lacks
		cold = cold && p.lacks && p.ahead == 0 && !p.inFlight
	}
	g.noted = true
	switch {
	case by >= 0:
		s.putBackAll(g, true)
		s.answerRefused(g, by, now)
		g.state = decided
	case g.plain || cold || !lacks && !s.settle(g, now):
		s.putBackAll(g, true)
		g.state = direct
	case !lacks:
		g.state = decided
	default:
		// Other groups may use the units while this group waits.
		s.putBackAll(g, false)
		s.launch(g)
	}
}

// spend takes the cost of p from its stash, or records why it cannot.
func (s *Store) spend(g *group, p *keyOps, now time.Duration) {
	if p.taken || p.refused {
		return
	}
	t := s.table.setOf(p.tag)
	t.lock()
	p.lifted = t.lifted
	pl := s.placeFor(t, p.tag, &p.shape, p.hold, now)
	if !g.noted {
		pl.note(now, p.cost)
	}
	p.said, p.lacks = pl.said, false
	st := pl.ready(now, p.cost)
	switch {
	case st != nil:
		st.left -= p.cost
		p.take(st, now)
		p.left = pl.left(now)
	case s.deniesAny(g, p, now):
		p.refused = true
	default:
		p.lacks, p.ahead, p.inFlight = true, s.ahead(pl, p, now, true), pl.flying
	}
	thirsty := st != nil && pl.wants(now)
	if thirsty {
		pl.flying = true
	}
	t.unlock()
	if thirsty {
		s.refill(g.ops, p)
	}
}

// take takes units of st for p.
func (p *keyOps) take(st *stash, now time.Duration) {
	p.taken, p.kept = true, false
	p.at, p.ceiling, p.estimate = st.at, st.ceiling, st.estimate(now)
	p.nonce = st.serve(p.n)
}

func (s *Store) deniesAny(g *group, p *keyOps, now time.Duration) bool {
	for i := range p.n {
		if s.denies(&p.said, &p.said.ops[i], g.ops[p.from+i].Cost, now) {
			return true
		}
	}
	return false
}

// settle fills the decisions of a group after all keys have spent. All decisions have one
// time at which every stash is valid. settle reports false when no such time exists: the
// source's clock has stepped between two grants.
func (s *Store) settle(g *group, now time.Duration) bool {
	at, least, ceiling := g.parts[0].estimate, g.parts[0].at, g.parts[0].ceiling
	for i := range g.parts {
		p := &g.parts[i]
		at, least, ceiling = max(at, p.estimate), max(least, p.at), min(ceiling, p.ceiling)
	}
	if at = min(at, ceiling-1); at < least {
		return false
	}
	for i := range g.parts {
		p := &g.parts[i]
		p.taken = false
		for j := range p.n {
			d, w, room := &g.decisions[p.from+j], &p.said.ops[j], p.policies[j].room
			*d = headgate.Decision{
				Limit: room, Remaining: min(max(0, w.remaining)+p.left, room), ResetAfter: max(0, w.resetAt-now),
				Verdict: headgate.Allow, Reason: headgate.WithinLimit, At: at,
			}
			s.receipt(&d.Receipt, &g.ops[p.from+j], p.nonce, p.tag, j, p.n, at)
		}
	}
	return true
}
