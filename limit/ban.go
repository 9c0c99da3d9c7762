package limit

import "github.com/headgate/headgate"

// banned reports whether a key with so many counted attempts is banned.
func (p *Plan) banned(attempts uint64) bool { return attempts > uint64(p.count) }

// banEnds gives the instant at which the window of c is over, its ban included.
func (p *Plan) banEnds(c *Cell) headgate.Instant {
	end := c.Time + headgate.Instant(p.per)
	if p.banned(c.Units) {
		end = end.Add(p.Policy.BanFor)
	}
	return end
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
		c.Units = 0
	}
}

// isBannedAt reports whether the key is banned at now by p, the plan of the policy of
// record. Until such a ban ends, other versions of the ban count attempts and change
// nothing else.
func (p *Plan) isBannedAt(c *Cell, now headgate.Instant) bool {
	p.rollBan(c, now)
	return p.banned(c.Units)
}

// carryBan keeps the attempts of a key that is not banned, unless the new period has no
// room for all of them.
func (p *Plan) carryBan(c *Cell, now headgate.Instant) {
	if now >= c.Time+headgate.Instant(p.per) {
		c.Units = 0
	}
}
