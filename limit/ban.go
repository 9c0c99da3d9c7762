package limit

import (
	"math"

	"github.com/headgate/headgate"
)

// banned reports whether a key with so many counted attempts is banned.
func (p *Plan) banned(attempts uint64) bool { return attempts > uint64(p.count) }

// banEnds gives the instant at which the window of c is over, its ban included.
func (p *Plan) banEnds(c *Cell) headgate.Instant {
	end := c.Time + headgate.Instant(p.per)
	if p.banned(c.Units) {
		end = end.Add(p.Policy.BanFor) - headgate.Instant(c.Returned)*p.cut
	}
	return end
}

// cutOf gives the part of a ban that Cell.Returned counts: the least power of ten
// of which 2^32 are as long as the ban with its window. So a difference of whole
// seconds between two policies is counted exactly.
func cutOf(policy headgate.Policy) headgate.Instant {
	cut := headgate.Instant(1)
	for headgate.Instant(policy.Limit.Per+policy.BanFor)/cut >= math.MaxUint32 {
		cut *= 10
	}
	return cut
}

// judgeBan tells what the key is told once the attempt is counted, which TakeCell
// does, passed or not.
func (p *Plan) judgeBan(c *Cell, now headgate.Instant, cost int64, d *Draw) {
	p.rollBan(c, now)
	d.now, d.at, d.cost = now, now, cost
	d.epoch = c.Epoch
	d.Verdict, d.Reason, d.retry = headgate.Allow, headgate.WithinLimit, 0
	after := *c
	after.count(now, cost)
	end := p.banEnds(&after)
	if p.banned(after.Units) {
		d.Verdict, d.Reason, d.retry = headgate.Deny, headgate.Banned, end.Sub(now)
	}
	d.from.ns, d.to.part = int64(end), after.Units
}

// count counts an attempt; the first one begins the window.
func (c *Cell) count(now headgate.Instant, cost int64) {
	if c.Units == 0 {
		c.Time = now
	}
	c.Units = min(c.Units+uint64(cost), countCeiling)
}

// rollBan ends a window that is over. A window that begins after now, because the
// clock has stepped back, begins now: its attempts still count, and nobody waits
// longer than a window and a ban. A fixed window is held after a small step
// instead, but its keys wait for that step too.
func (p *Plan) rollBan(c *Cell, now headgate.Instant) {
	switch {
	case c.Units == 0:
	case now < c.Time:
		c.Time = now
	case now >= p.banEnds(c):
		c.Units, c.Returned = 0, 0
	}
}

// carryBan keeps the attempts of a window that is not over. A key that was banned
// stays so if its attempts are above the new count too, until its old end or the
// new one, whichever is earlier. A key that was not is banned only if the new
// period has room for all its attempts.
func (p *Plan) carryBan(c *Cell, old *Plan, now headgate.Instant) {
	old.rollBan(c, now)
	was, ends := old.banned(c.Units), old.banEnds(c)
	c.Returned = 0
	switch {
	case c.Units == 0:
	case was && p.banned(c.Units):
		// The window keeps its start, so that a limit which comes back finds its end again.
		c.Returned = uint32(max((p.banEnds(c)-ends+p.cut-1)/p.cut, 0))
	case now >= c.Time+headgate.Instant(p.per):
		c.Units = 0
	}
}
