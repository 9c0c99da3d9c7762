package prefetch

import (
	"math"
	"time"

	"github.com/headgate/headgate"
)

// wants says whether the next grant is to be asked for now.
func (p *place) wants(now time.Duration) bool {
	return p.low >= 0 && !p.flying && now >= p.quiet && (now >= p.renew || p.left(now) <= p.low)
}

// tick ends a period of demand that is over.
func (p *place) tick(now time.Duration) {
	if e := now - p.since; e >= p.hold || e < 0 {
		p.roll(e)
		p.since = now
	}
}

// note counts demand that no stash serves, whatever comes of it.
func (p *place) note(now time.Duration, cost int64) {
	p.tick(now)
	if p.asked < headgate.MaxUnits {
		p.asked += cost
	}
}

// roll ends a period of demand that was e long: of the demand before, half is left
// after a hold.
func (p *place) roll(e time.Duration) {
	holds := max(1, float64(e)/float64(p.hold))
	keep := math.Exp2(-holds)
	p.demand = p.demand*keep + float64(p.askedFor())/holds*(1-keep)
	p.asked, p.stashes[0].asked, p.stashes[1].asked = 0, 0, 0
}

// askedFor gives what was asked for in this period, served from stashes or not.
func (p *place) askedFor() int64 { return p.asked + p.stashes[0].asked + p.stashes[1].asked }

// expect gives the units that are asked for in one hold, own of which just were.
func (p *place) expect(own int64) float64 {
	return max(p.demand, float64(p.askedFor()-own))
}

// serves gives how many of the units that are left will be asked for at a rate (units
// a nanosecond) before their stash ends.
func (p *place) serves(now time.Duration, rate float64) float64 {
	n := 0.0
	for i := range p.stashes {
		if st := &p.stashes[i]; now < st.until {
			n += min(float64(st.left), rate*float64(st.until-now))
		}
	}
	return n
}

// ample says that the source has last said that more than seven eighths of each limit remain.
func (p *place) ample(of *keyOps) bool {
	for i := range of.n {
		if room := of.policies[i].room; p.said.ops[i].remaining <= room-room/8 {
			return false
		}
	}
	return true
}

// measure keeps how long the source takes, and its clock against ours.
func (s *Store) measure(at headgate.Instant, m0, m1 time.Duration) {
	took := int64(max(m1-m0, 1))
	if before := s.trip.Load(); before > 0 {
		took = before + (took-before)/8
	}
	s.trip.Store(took)
	s.offset.Store(int64(at) - int64(m1))
}

// ahead gives how many units to take beyond what was asked for: what is expected to
// be asked for while the stash lives once it is here, and before the window of the
// source ends, if serving only as far as what is here does not serve it; less twice
// the root of that, which is how far short of it random demand falls one time in
// forty, or once the root where units are ample. What is left when a stash ends is
// lost, and demand of a few units a hold is worth no stash.
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
	// Requests come one by one, and units by the cost of one: so does their spread.
	cost := float64(max(p.cost, 1))
	if spread := math.Sqrt(n * cost); pl.ample(p) {
		n -= spread
	} else {
		n -= 2 * spread
	}
	n = max(0, min(n, float64(max(p.most/wholeParts, 1))))
	return int64(math.Floor(n/cost) * cost) // What is less than a request is spent by none.
}

// lifetime is a hold less a thousandth of it, which is what our clock may be slow by.
func lifetime(hold time.Duration) time.Duration { return hold - hold/1000 }

// plan says how many units must be left, and until when, for the next grant to come in time.
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
