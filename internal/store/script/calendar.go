package script

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// CheckEdges returns headgate.ErrNoEdges if an Op of the plan needs edges, and these are not the edges
// of its windows.
func (p *Plan) CheckEdges(e *headgate.Edges) error {
	if !p.calendar() {
		return nil
	}
	return limit.CheckEdges(p.policy.Limit.Calendar, e)
}

// outside is the number of used units in the reply for a time outside the edges of an Op.
const outside = -1

// mostTime bounds the times of replies: 142 years before 1970.
const mostTime = 1 << 52

// explainCalendar decodes three numbers: the count's Time of package limit, before the Op, the units
// used before, and the version.
func (a *answer) explainCalendar(d *headgate.Decision) error {
	count, used, now, unit := instant(a.numbers[0]), a.numbers[1], instant(a.now), a.plan.policy.Limit.Calendar
	if used == outside {
		return &headgate.EdgeError{At: now, Edges: *a.edges}
	}
	last := int64(a.edges[len(a.edges)-1]) / int64(time.Microsecond)
	if a.numbers[0] > last+int64(time.Second/time.Microsecond) || a.numbers[0] < -mostTime || limit.CountFreeAt(unit, count) < now ||
		used < 0 || used > a.plan.mostUsed() || !a.isLast(a.numbers[2]) {
		return wrong("%v for a window of %s", a.numbers, a.plan.policy.Limit)
	}
	ends := limit.CountEnds(unit, a.edges, count, now).Sub(now)
	a.explainCount(d, used, ends)
	d.Carried = used > 0 && limit.Carried(a.edges, count, now)
	d.At = max(now, limit.CountBegan(count))
	d.Receipt.From = d.At
	return nil
}

// explainCount explains the used units of a window that ends after a time, and are reset then.
func (a *answer) explainCount(d *headgate.Decision, used int64, ends time.Duration) {
	counted := a.judgeUnits(d, min(used, a.plan.room))
	if a.plan.policy.CountAll {
		if d.Verdict == headgate.Allow && used > a.plan.room {
			d.Verdict, d.Reason = headgate.Deny, headgate.OverLimit
		}
		counted = min(used, headgate.MaxUnits-a.cost) + a.cost // The attempt counts, whether it passes or not.
	}
	if d.Reason == headgate.OverLimit {
		d.RetryAfter = ends
	}
	if counted > 0 {
		d.ResetAfter = ends
	}
}
