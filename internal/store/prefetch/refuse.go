package prefetch

import (
	"time"

	"github.com/headgate/headgate"
)

// denies reports whether the source is known to refuse an op of this cost at now.
//
// The source has refused a request of w.cost that began at arrived - lag or later. Until
// its RetryAfter after that time, no request of that cost or more can pass, unless units
// are returned or a ban is lifted. For these two cases the source is called again from
// said.until on.
func (s *Store) denies(d *said, w *words, cost int64, now time.Duration) bool {
	return w.verdict == headgate.Deny && cost >= w.cost && now >= d.arrived && now < d.until && now < w.retryAt-d.lag
}

// tell repeats the answer on one op, as of now.
func (sd *said) tell(w *words, p *policy, now time.Duration, d *headgate.Decision) {
	*d = headgate.Decision{
		Verdict: w.verdict, Reason: w.reason, Limit: p.room, Remaining: max(0, w.remaining),
		ResetAfter: max(0, w.resetAt-now), At: sd.at.Add(max(0, now-sd.arrived)),
	}
	if w.verdict == headgate.Deny {
		d.RetryAfter = max(0, w.retryAt-now)
	}
}

// noteRefusals records the answer on ops that was requested at m0 and arrived at m1.
func (s *Store) noteRefusals(sd *said, ops []headgate.Op, decisions []headgate.Decision, m0, m1 time.Duration) {
	*sd = said{at: decisions[0].At, arrived: m1, lag: m1 - m0, until: m0}
	for i := range decisions {
		d := &decisions[i]
		sd.ops[i] = words{
			cost: ops[i].Cost, remaining: d.Remaining, verdict: d.Verdict, reason: d.Reason,
			resetAt: m1 + d.ResetAfter, retryAt: m1 + d.RetryAfter,
		}
		if repeatable(d) && s.denyFor > 0 {
			sd.until = m0 + s.denyFor
		}
	}
}

// repeatable reports whether a refusal is valid for a known time.
func repeatable(d *headgate.Decision) bool {
	return d.Verdict == headgate.Deny && d.RetryAfter > 0 &&
		(d.Reason == headgate.OverLimit || d.Reason == headgate.QueueFull || d.Reason == headgate.Banned)
}

// refuse decides a group from known refusals. One op must be known to be refused, and no
// attempt must have to be counted. An op of a key without a known answer gets Allow with
// nothing remaining.
func (s *Store) refuse(g *group) bool {
	if !g.local || s.denyFor < 0 {
		return false
	}
	now := s.now()
	by := -1
	for i := range g.parts {
		p := &g.parts[i]
		p.look(s, now)
		refused, uncounted := s.refuses(g, p, now)
		if uncounted {
			return false
		}
		if refused && by < 0 {
			by = i
		}
	}
	if by < 0 {
		return false
	}
	s.answerRefused(g, by, now)
	return true
}

// look copies the last answer on the key.
func (p *keyOps) look(s *Store, now time.Duration) {
	p.said = said{}
	t := s.table.setOf(p.tag)
	t.lock()
	p.lifted = t.lifted
	if pl := t.find(p.tag, &p.shape); pl != nil && now >= pl.said.arrived {
		p.said = pl.said
	}
	t.unlock()
}

// refuses reports whether an op of the key is known to be refused. uncounted reports that a
// ban of the key would have to count the attempt.
func (s *Store) refuses(g *group, p *keyOps, now time.Duration) (refused, uncounted bool) {
	for i := range p.n {
		denied := s.denies(&p.said, &p.said.ops[i], g.ops[p.from+i].Cost, now)
		refused = refused || denied
		uncounted = uncounted || p.policies[i].bans && !denied
	}
	return refused, uncounted
}

// answerRefused fills the decisions of a group that the key by refuses. An op that is not
// refused itself says Allow. No units are taken.
func (s *Store) answerRefused(g *group, by int, now time.Duration) {
	at := g.parts[by].said.at.Add(max(0, now-g.parts[by].said.arrived))
	for i := range g.parts {
		p := &g.parts[i]
		for j := range p.n {
			d, w := &g.decisions[p.from+j], p.said.ops[j]
			if w.verdict == headgate.Deny && !p.denial && !s.denies(&p.said, &w, g.ops[p.from+j].Cost, now) {
				w.verdict = headgate.Allow
			}
			if w.verdict != headgate.Deny {
				w.verdict, w.reason = headgate.Allow, headgate.WithinLimit
			}
			p.said.tell(&w, p.policies[j], now, d)
			d.At = at
		}
	}
	s.counts.denied.Add(1)
}

// record remembers the source's refusal of a group.
func (s *Store) record(g *group, decisions []headgate.Decision, m0, m1 time.Duration) {
	if !g.local || s.denyFor < 0 || !anyRepeatable(decisions) {
		return
	}
	for i := range g.parts {
		p := &g.parts[i]
		t := s.table.setOf(p.tag)
		t.lock()
		if t.lifted != p.lifted {
			t.unlock()
			continue
		}
		pl := s.placeFor(t, p.tag, &p.shape, p.hold, m1)
		s.noteRefusals(&pl.said, g.ops[p.from:p.from+p.n], decisions[p.from:p.from+p.n], m0, m1)
		t.unlock()
	}
}

func anyRepeatable(decisions []headgate.Decision) bool {
	for i := range decisions {
		if repeatable(&decisions[i]) {
			return true
		}
	}
	return false
}
