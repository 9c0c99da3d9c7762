package limit

import (
	"math"
	"time"

	"github.com/headgate/headgate"
)

// never is the time of a request that no time admits.
const never = headgate.Instant(math.MaxInt64)

// CellPassesAt returns the time from which one unit passes: now, or a later time if the key is
// limited. It is the largest Instant for a limit that admits nothing. p is the policy of record.
// It does not change the cell.
func (p *Plan) CellPassesAt(c *Cell, now headgate.Instant) headgate.Instant {
	if p.wholeStep && c.Units == 0 && p.count > 0 && c.Time <= now+headgate.Instant(p.horizon.ns) {
		next, _ := p.Step(c.Time, now, 1)
		return max(now, next-headgate.Instant(p.refill.ns))
	}
	copied, draw := *c, Draw{}
	if p.Calendar() { // The count must not begin at these edges.
		edges := p.EdgesOf(c)
		draw.Edges = &edges
	}
	p.JudgeCell(&copied, now, 1, headgate.Take, &draw)
	return passesAt(draw.Verdict, draw.Reason, now, draw.retry)
}

func passesAt(v headgate.Verdict, why headgate.Reason, now headgate.Instant, retry time.Duration) headgate.Instant {
	switch {
	case v != headgate.Deny:
		return now
	case why == headgate.Never:
		return never
	default:
		return now.Add(retry)
	}
}
