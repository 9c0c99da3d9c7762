package prefetch

import (
	"math"
	"time"

	"github.com/headgate/headgate"
)

// land stores the result of a flight for one key at the key's place.
func (s *Store) land(f *flight, l *keyGrant, m0, m1 time.Duration) {
	p := &l.part
	decisions := f.decisions[l.from : l.from+p.n]
	n := int64(0)
	if f.err == nil {
		n = l.read(decisions, f.ops[l.from].Cost)
		ops := make([]headgate.Op, p.n)
		for i := range ops {
			ops[i].Cost = l.least
		}
		s.noteRefusals(&l.said, ops, decisions, m0, m1)
	}
	st, bordered := s.stashOf(p, decisions, n, m0, m1)
	if st.at >= st.ceiling {
		l.odd = l.odd || !l.denied // The ops were decided at times that have no time in common.
	}

	l.kept = st
	st.nonce += uint64(p.n)
	st.left -= min(l.keep, n)
	t := s.table.setOf(p.tag)
	t.lock()
	defer t.unlock()
	pl := s.placeFor(t, p.tag, &p.shape, p.hold, m1)
	pl.flying = false
	switch {
	case f.err != nil || l.odd:
		pl.quiet = m1 + p.hold
	case t.forgot != l.forgot:
		// The grant may be from before or after the key was forgotten.
	case l.denied:
		if pl.said = l.said; t.lifted != p.lifted {
			pl.said.until = 0
		}
		pl.quiet = min(l.said.until, l.said.retry())
	default:
		s.counts.granted.Add(uint64(n))
		pl.said = l.said
		s.deposit(pl, st, m1)
		l.left = pl.left(m1)
		s.plan(pl, p, st.until, bordered, m1)
	}
}

// read gives the number of units that every op of the key was granted.
func (l *keyGrant) read(decisions []headgate.Decision, most int64) int64 {
	n := most
	for i := range decisions {
		switch d := &decisions[i]; d.Verdict {
		case headgate.Allow:
			n = min(n, d.Receipt.Cost)
		default:
			l.denied = true
		}
	}
	if l.denied {
		return 0
	}
	if n < l.least {
		l.odd = true // For example, a full store lets requests pass uncounted.
		return 0
	}
	return n
}

// retry gives the earliest time, by this process's clock, at which all refused ops can pass.
func (sd *said) retry() time.Duration {
	last := time.Duration(0)
	for i := range sd.ops {
		if w := &sd.ops[i]; w.verdict == headgate.Deny {
			last = max(last, w.retryAt-sd.lag)
		}
	}
	return last
}

// stashOf makes a stash of n granted units. The stash expires a hold after m0, and before the
// window ends in which the units were counted. The source's clock reads at most
// at + (now - m0), and may count in whole microseconds.
func (s *Store) stashOf(p *keyOps, decisions []headgate.Decision, n int64, m0, m1 time.Duration) (st stash, bordered bool) {
	st = stash{
		left: n, units: n, arrived: m1, ceiling: math.MaxInt64,
		until: m0 + lifetime(p.hold), nonce: s.firstNonce(),
	}
	for i := range decisions {
		at := decisions[i].At // A window may be held back by a step of the clock while the other windows are not.
		st.at, st.ceiling = max(st.at, at), min(st.ceiling, at.Add(p.hold))
		if border, ok := p.policies[i].grid.after(at); ok {
			if end := m0 + lifetime(border.Sub(at)) - time.Microsecond; end < st.until {
				st.until, bordered = end, true
			}
			st.ceiling = min(st.ceiling, border)
		}
	}
	return st, bordered
}
