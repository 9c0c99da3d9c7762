package fairshare

import "github.com/headgate/headgate"

// course records how many units all clients had used at times of the running and of the
// last cycle. Limiter.mu guards it.
type course struct {
	now, last record
}

// record is the use of one cycle. used[i] is the number of units that are known to have been used by
// the time i/creditSlots after the start.
type record struct {
	start headgate.Instant
	used  [creditSlots + 1]int64
	total int64
}

// begin makes the running cycle the last one.
func (h *course) begin(next *cycle, total int64) {
	h.now.total = total
	h.last, h.now = h.now, record{start: next.start}
	if h.last.start != next.start.Add(-next.Cycle) {
		h.last = record{}
	}
}

// carry continues a cycle as next. If its times change, the earlier use is forgotten.
func (h *course) carry(last, next *cycle) {
	if last.start != next.start || last.Cycle != next.Cycle {
		*h = course{now: record{start: next.start}}
	}
}

// note records that the units were used before due: any later request calls note first.
func (h *course) note(c *cycle, due headgate.Instant, used int64) {
	past := due.Sub(h.now.start) - 1
	if i := (past*creditSlots + c.Cycle - 1) / c.Cycle; i >= 0 && i <= creditSlots {
		h.now.used[i] = max(h.now.used[i], used)
	}
}

// late returns an upper bound of the units of the last cycle that all clients used less than a
// cycle's length before now.
func (h *course) late(c *cycle, now headgate.Instant) int64 {
	past := min(creditSlots, int(now.Sub(h.now.start)*creditSlots/c.Cycle))
	var expired int64
	for i := 0; i <= past; i++ {
		expired = max(expired, h.last.used[i])
	}
	return max(0, h.last.total-expired)
}

// used returns the units that all clients used in the cycle.
func (c *cycle) used() int64 {
	sum := c.removedUnits
	for _, x := range c.all {
		sum += x.used(x.left.Load())
	}
	return sum
}
