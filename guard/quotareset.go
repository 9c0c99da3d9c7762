package guard

import (
	"context"

	"github.com/headgate/headgate"
)

// ResetUsage gives back the used units of a customer: those of a quota, or of all quotas with "", and of the limit with a
// period such as 30d or month, or of all limits with "". It returns what it gave back. It also empties the counters in Local.
//
// Of a fixed window it gives back exactly the units that it returns: units that other requests take meanwhile
// stay counted, and of two resets at once each returns its own part. Of the other algorithms it gives back all units at one time, and
// returns what was used before. All versions of a limit share one
// counter, so the reset has effect for each of them. Receipts of units from before the reset return nothing
// afterwards. Another instance that remembers a refusal may refuse for up to a second more. The limits are reset one after another.
// After an error of the store, the units of one limit may have been given back or not, and the result has what was used of the limits
// from it on. If the window of a calendar ends during the call, the error is a *headgate.EdgeError, and units of the next window stay
// counted.
//
// Config.Meter counts what the longest fixed window of each quota has given back, with negative numbers. Afterwards it counts no unit
// that a request from before the reset gives back, because the reset has counted it: in this instance, and for the last 1,024
// counters that were reset.
func (g *Guard) ResetUsage(ctx context.Context, customer, quota, period string) ([]QuotaUse, error) {
	u, err := g.usageOf(customer, quota, period)
	if err != nil {
		return nil, err
	}
	defer u.end()
	all, err := u.read(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if err := u.reset(ctx, i, &all[i]); err != nil {
			return u.shown(all), err
		}
	}
	return u.shown(all), u.resetLocal(ctx)
}

// reset gives back the units of counter i, with a call of its own: after an error, all other counters are known.
func (u *usage) reset(ctx context.Context, i int, use *QuotaUse) error {
	fixed, cost := use.Algorithm == headgate.FixedWindow, int64(headgate.MaxUnits)
	if fixed {
		cost = use.Used
	}
	if cost == 0 {
		u.noteReset(&u.counted[i], use)
		return nil
	}
	u.ops = u.ops[:0]
	u.add(i, u.ids[i], headgate.Refund, cost, false)
	u.ops[0].Edges = use.onlyWindow(u.ops[0].Edges)
	if err := u.apply(ctx, u.guard.store); err != nil || !fixed {
		return err
	}
	d := &u.decided[0]
	left := u.counted[i].use(d)
	u.noteReset(&u.counted[i], &left)
	use.Used = d.Receipt.Cost
	u.meterReset(&u.counted[i], d)
	return nil
}

// onlyWindow gives edges with the window of a calendar that was read, so that the store gives back no units of the next one.
func (q *QuotaUse) onlyWindow(edges *headgate.Edges) *headgate.Edges {
	if edges == nil {
		return nil
	}
	return &headgate.Edges{q.Start, q.End, q.End, q.End}
}

// noteReset notes that the receipts of a counter from before a time return nothing: it was reset then, or had no units.
func (u *usage) noteReset(c *countedLimit, at *QuotaUse) {
	if c.billed && u.set.config.Meter != nil {
		u.guard.state.resets.note(counter{c.quota, c.name}, resetSpan{at.Start, at.At})
	}
}

// meterReset has Config.Meter take back what a reset has given back. Of each quota, the fixed window with the longest period
// counts: bills follow it. Other algorithms do not know how many units they have given back.
func (u *usage) meterReset(c *countedLimit, d *headgate.Decision) {
	units := d.Receipt.Cost
	if u.set.config.Meter == nil || !c.billed || units == 0 {
		return
	}
	back := headgate.Usage{Customer: c.name, Quota: c.quota, At: d.At, Admitted: -units, Shadow: c.shadow}
	if c.after == AfterMeter && c.window.quota.beyond {
		left, included := d.Limit-d.Remaining, c.limit.Policy.Limit.Count
		back.Metered = max(0, left-included) - max(0, left+units-included)
	}
	u.set.config.Meter.Count(back)
}

// resetLocal empties the counters of this instance in Local.
func (u *usage) resetLocal(ctx context.Context) error {
	if u.set.config.Local == nil {
		return nil
	}
	u.ops = u.ops[:0]
	for i := range u.counted {
		if id := u.counted[i].window.local; id != 0 {
			u.add(i, id, headgate.Refund, headgate.MaxUnits, true)
		}
	}
	return u.apply(ctx, u.set.config.Local)
}
