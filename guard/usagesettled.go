package guard

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/headgate/headgate"
)

// correct has Config.Meter count how the outcome of a request changes the units of one rule. The numbers follow the request, also where
// the store cannot return or charge the units. A request gives its metered units back first. If none of its units was metered, the metered
// part of what is charged beyond the estimate is known after the charge: see settlement.charged. It is lost with the charge.
func (e *ending) correct(c *countedUsage, by *set, o *Outcome) {
	u := c.usage
	name := e.keys[c.from:c.to]
	u.Customer = unsafe.String(unsafe.SliceData(name), len(name)) //nolint:gosec // A Meter does not keep the name.
	u.Quota = c.prepared.Quota
	taken, metered := u.Admitted, u.Metered
	left := taken
	if status := httpStatus(o); len(c.prepared.Count) > 0 && status != 0 && !slices.Contains(c.prepared.Count, status) {
		left = 0
	} else if c.prepared.Settles() {
		if cost, stated := c.prepared.actual(o); stated {
			left = cost
		}
	}
	u.Admitted, u.Metered = left-taken, 0
	switch {
	case left < taken:
		u.Metered = -min(metered, taken-left)
		by.takeBack(&u)
		return
	case left > taken && metered > 0:
		u.Metered = left - taken // The request has used up the included units, so further ones are beyond them, whatever the store says.
	case left > taken:
		extra := u
		extra.Customer, extra.Admitted = strings.Clone(u.Customer), 0
		e.settlement.extras = append(e.settlement.extras, extra)
		c.extra = len(e.settlement.extras)
	default:
		return
	}
	e.settlement.meter.Count(u)
}

// charged notes the metered part of units that were charged, by their numbers in the counter: see charge. If several limits
// meter, it is the highest part.
func (w *settlement) charged(c *charging, cost int64, d *headgate.Decision) {
	if q := &c.window.quota; c.extra >= 0 && q.beyond && q.after == AfterMeter {
		included := q.included
		if c.local {
			included = q.includedPart
		}
		used := d.Limit - d.Remaining
		if d.Remaining == 0 { // Remaining does not show a debt. At least the units of the charge are used.
			used = max(used, cost)
		}
		w.beyond(c, min(cost, max(0, used-included)))
	}
}

// beyond adds metered units to those of a limit. What does not fit into the counter is beyond the included units too.
func (w *settlement) beyond(c *charging, n int64) {
	if c.extra >= 0 && c.window.quota.beyond && c.window.quota.after == AfterMeter {
		c.beyond += n
		extra := &w.extras[c.extra]
		extra.Metered = max(extra.Metered, c.beyond)
	}
}
