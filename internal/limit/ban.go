package limit

import "github.com/headgate/headgate"

// attemptCeiling is the maximum of attempts. One attempt more than the largest Count bans.
const attemptCeiling = headgate.MaxUnits + 1

// banned reports whether a key with this number of counted attempts is banned.
func (p *Plan) banned(attempts uint64) bool { return attempts > uint64(p.count) }

// banEnds returns the end of the window of c, including a ban.
func (p *Plan) banEnds(c *Cell) headgate.Instant {
	end := c.Time + headgate.Instant(p.per)
	if p.banned(c.Units) {
		end = end.Add(p.Policy.BanFor)
	}
	return end
}

// judgeBan decides an attempt as if it were counted. TakeCell then counts the attempt,
// whether it passed or not.
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
	d.from, d.to = span{int64(end), after.Units}, span{part: after.Units}
}

// count counts an attempt. The first attempt starts the window.
func (c *Cell) count(now headgate.Instant, cost int64) {
	if c.Units == 0 {
		c.Time = now
	}
	c.Units = min(c.Units+uint64(cost), attemptCeiling)
}

// rollBan ends a window that is over. If the clock has stepped back before the start of
// the window, the window starts now. Its attempts still count, and no key waits longer than
// a window and a ban. A fixed window keeps its start after a small step back, but its keys
// also wait for that step.
func (p *Plan) rollBan(c *Cell, now headgate.Instant) {
	switch {
	case c.Units == 0:
	case now < c.Time:
		c.Time = now
	case now >= p.banEnds(c):
		c.Units = 0
	}
}

// isBannedAt reports whether p, the plan of the policy of record, bans the key at now. Until
// such a ban ends, other versions of the ban count attempts and change nothing else.
func (p *Plan) isBannedAt(c *Cell, now headgate.Instant) bool {
	p.rollBan(c, now)
	return p.banned(c.Units)
}

// carryBan keeps the attempts of a key that is not banned, unless the window of p is over.
func (p *Plan) carryBan(c *Cell, now headgate.Instant) {
	if now >= c.Time+headgate.Instant(p.per) {
		c.Units = 0
	}
}
