package script

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
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

// explainCalendar decodes six numbers: the time of the decision ahead of now, the units used before,
// whether some of them can be from before the window, the times until the Op passes and until no unit
// counts, and the version.
func (a *answer) explainCalendar(d *headgate.Decision) error {
	held, used, carried, passes, empty := a.numbers[0], a.numbers[1], a.numbers[2], a.numbers[3], a.numbers[4]
	if used == outside {
		return &headgate.EdgeError{At: instant(a.now), Edges: *a.edges}
	}
	if held < 0 || held > farthest || used < 0 || used > a.plan.mostUsed() || carried < 0 || carried > 1 ||
		passes < 0 || passes > empty || empty > farthest || !a.isLast(a.numbers[5]) {
		return wrong("%v for a window of %s", a.numbers, a.plan.policy.Limit)
	}
	a.explainCount(d, used, micros(empty))
	if d.Reason == headgate.OverLimit {
		d.RetryAfter = micros(passes)
	}
	d.Carried = carried == 1
	d.At = instant(a.now + held)
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
