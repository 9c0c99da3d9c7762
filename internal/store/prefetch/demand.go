package prefetch

import (
	"math"
	"time"

	"github.com/headgate/headgate"
)

// wants reports whether to request the next grant now.
func (p *place) wants(now time.Duration) bool {
	return p.low >= 0 && !p.flying && now >= p.quiet && (now >= p.renew || p.left(now) <= p.low)
}

// tick ends a period of demand that has lasted long enough.
func (p *place) tick(now time.Duration) {
	if e := now - p.since; e >= p.hold || e < 0 {
		p.roll(e)
		p.since = now
	}
}

// note counts demand that no stash serves, allowed or refused.
func (p *place) note(now time.Duration, cost int64) {
	p.tick(now)
	if p.asked < headgate.MaxUnits {
		p.asked += cost
	}
}

// roll ends a period of demand of length e. The weight of earlier demand halves with each
// hold.
func (p *place) roll(e time.Duration) {
	holds := max(1, float64(e)/float64(p.hold))
	keep := math.Exp2(-holds)
	p.demand = p.demand*keep + float64(p.askedFor())/holds*(1-keep)
	p.asked, p.stashes[0].asked, p.stashes[1].asked = 0, 0, 0
}

// askedFor gives the demand of this period, served from stashes or not.
func (p *place) askedFor() int64 { return p.asked + p.stashes[0].asked + p.stashes[1].asked }

// expect gives the expected demand in one hold, in units. own units of it were just demanded.
func (p *place) expect(own int64) float64 {
	return max(p.demand, float64(p.askedFor()-own))
}

// serves gives the number of unspent units that will be spent before their stash expires, at
// a rate in units a nanosecond.
func (p *place) serves(now time.Duration, rate float64) float64 {
	n := 0.0
	for i := range p.stashes {
		if st := &p.stashes[i]; now < st.until {
			n += min(float64(st.left), rate*float64(st.until-now))
		}
	}
	return n
}

// ample reports that more than seven eighths of each limit remained at the last answer of the
// source.
func (p *place) ample(ops *keyOps) bool {
	for i := range ops.n {
		if room := ops.policies[i].room; p.said.ops[i].remaining <= room-room/8 {
			return false
		}
	}
	return true
}

// measure records the duration of a call of the source, and the offset of its clock.
func (s *Store) measure(at headgate.Instant, m0, m1 time.Duration) {
	duration := int64(max(m1-m0, 1))
	if before := s.trip.Load(); before > 0 {
		duration = before + (duration-before)/8
	}
	s.trip.Store(duration)
	s.offset.Store(int64(at) - int64(m1))
}

// ahead gives the number of units to prefetch: the expected demand while the new stash is
// valid, less a margin. The new stash is valid from its arrival until it expires or the
// source's window ends. With serving, demand that the current stashes serve is subtracted.
//
// The margin is twice the square root of the expectation: random demand falls short of that
// once in forty. Where units are ample, the margin is one square root. Unspent units of a
// stash are lost, and a demand of a few units a hold deserves no stash.
func (s *Store) ahead(pl *place, p *keyOps, now time.Duration, serving bool) int64 {
	if p.batch > 0 {
		return p.batch
	}
	trip := time.Duration(s.trip.Load())
	lives := lifetime(p.hold)
	if offset := s.offset.Load(); offset != 0 {
		t := headgate.Instant(offset).Add(now)
		if border, ok := p.border(t); ok {
			lives = min(lives, border.Sub(t))
		}
	}
	if lives <= trip {
		return 0
	}
	rate := pl.expect(p.cost) / float64(p.hold)
	n := rate * float64(lives-trip)
	if serving {
		n = min(n, rate*float64(lives)-pl.serves(now, rate))
	}
	if n <= 0 {
		return 0
	}
	// Requests arrive one by one, each with cost units. Their spread grows with the cost.
	cost := float64(max(p.cost, 1))
	if spread := math.Sqrt(n * cost); pl.ample(p) {
		n -= spread
	} else {
		n -= 2 * spread
	}
	n = max(0, min(n, float64(max(p.most/wholeParts, 1))))
	return int64(math.Floor(n/cost) * cost) // No request can spend less than its cost.
}

// lifetime is a hold less a thousandth: this process's clock may be slow by that.
func lifetime(hold time.Duration) time.Duration { return hold - hold/1000 }

// plan sets when to request the next grant: at how many unspent units, and at the latest when.
func (s *Store) plan(pl *place, p *keyOps, until time.Duration, bordered bool, now time.Duration) {
	pl.low, pl.renew = -1, math.MaxInt64
	expected := pl.expect(0)
	if expected < 1 || s.ahead(pl, p, now, false) < 1 {
		return
	}
	trip := time.Duration(s.trip.Load())
	pl.low = int64(expected * 1.5 * float64(trip) / float64(p.hold))
	if !bordered {
		pl.renew = until - trip - trip/4
	}
}
