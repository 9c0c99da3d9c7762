package holder

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
)

// claim is a holder's claim on one resource.
type claim struct {
	resource string
	made     headgate.Instant
	held     state.Held
	wants    int64
	said     int64 // the wants of the last report
	safe     int64 // of the last lease
	refresh  time.Duration
	slots    bool
	leased   bool // A lease is or was valid since the claim was made.
	lost     bool // The lease has ended.
	kept     bool // The lease had ended, and grace keeps the safe amount in force beside the new one.
	grace    state.Grace
	refused  *state.Error

	reported headgate.Instant // time of the last report
	seq      uint64           // of the last report, 0 if this stream has none
	answered bool             // The last report has an answer.
	asked    headgate.Instant // time of the first report without an answer
	retry    time.Duration    // the time from the last report to its repetition
	next     headgate.Instant // time of the next report without a change
	ack      bool             // the newest version is not acknowledged

	short   bool             // The server gave less than the holder said, or the lease has ended.
	shortAt headgate.Instant // since when

	spent, failed int64 // units since the last report, in thousandths
}

// interval returns the shortest time between two reports of changes.
func (c *claim) interval() time.Duration {
	if c.slots {
		return slotInterval
	}
	return interval
}

// soonest returns the time of the next report of a changed demand, or never if the change is below an
// eighth. Growth is reported at once and a shrink later, because most shrinks are followed by growth.
// While the holder has less than half of what it said and wants, the amounts make no difference.
func (c *claim) soonest() headgate.Instant {
	has := 2 * c.held.Lease().Amount
	switch by := c.wants - c.said; {
	case by == 0, 8*max(by, -by) < c.said, has > 0 && c.said > has && c.wants > has:
		return never
	case by < 0 && !c.slots:
		return c.reported.Add(shrinkInterval)
	}
	return c.reported.Add(c.interval())
}

// due returns the time of the next report of the claim on the present stream.
func (c *claim) due() headgate.Instant {
	if c.seq == 0 || c.refused != nil || !c.answered {
		return c.next
	}
	return min(c.next, c.soonest())
}

// amount returns what the holder may use at now.
func (c *claim) amount(now headgate.Instant, mode OnLoss) int64 {
	switch amount := c.held.Amount(now); {
	case mode != Pessimistic && c.kept && c.held.Left(now) > 0 && c.grace.Left(now) > 0:
		return max(amount, c.safe)
	case amount > 0 || c.held.Left(now) > 0:
		return amount
	case mode == Optimistic && (c.leased || now.Sub(c.made) >= optimistic):
		return c.wants
	case mode == Safe && c.leased:
		return c.safe
	}
	return 0
}

// shorten notes whether the holder has less than it said.
func (c *claim) shorten(now headgate.Instant, mode OnLoss) {
	short := c.lost && c.amount(now, mode) < c.wants || c.answered && c.leased && !c.lost && c.amount(now, mode) < c.said
	if short && !c.short {
		c.shortAt = now
	}
	if c.answered || c.lost {
		c.short = short
	}
}

// receive takes a lease, whose fields may have any values.
func (c *claim) receive(now headgate.Instant, lease *state.Lease) {
	l := *lease
	l.Amount, l.Safe = within(l.Amount), within(l.Safe)
	l.Length = min(max(l.Length, 0), MaxLength)
	l.Unknown = max(l.Unknown, 0)
	l.Parts = nil
	lost := c.lost || c.held.Left(now) > 0 && c.held.Lease().Unbacked
	if c.held.Receive(&l) {
		c.ack = true
	}
	if c.held.Left(now) <= 0 {
		return
	}
	newest := c.held.Lease()
	c.grace.Receive(now, newest)
	waits, safe := c.grace.Left(now) > 0, newest.Safe
	if waits && c.leased { // The server may not know all holders, among which a capacity is divided.
		safe = min(safe, c.safe)
	}
	c.kept = waits && (lost || c.kept)
	c.leased, c.lost, c.refused = true, false, nil
	c.safe, c.slots = safe, newest.Slots
	if l.Seq == 0 || l.Seq < c.seq {
		return
	}
	c.answered, c.retry = true, leastRetry
	if l.Refresh > 0 {
		c.refresh = min(max(l.Refresh, leastRefresh), MaxLength)
	}
}

// within clamps an amount of a server.
func within(amount int64) int64 { return min(max(amount, 0), state.MaxAmount) }
