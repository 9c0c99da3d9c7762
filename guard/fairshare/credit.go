package fairshare

import (
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

const (
	// creditSlots is the number of slots of a cycle's length in which the use of the credit is
	// recorded. Each use expires up to one slot late.
	creditSlots = 100
	// arrivalPart bounds the time until a newcomer can use its whole default share:
	// 1/arrivalPart of a cycle.
	arrivalPart = 10
	// firstPart is the part of its share that a newcomer leaves to the first requests of others within its
	// first tenth of a cycle.
	firstPart = 8
	// creditRetryPart bounds the attempts after the credit was refused: one per client and
	// 1/creditRetryPart of a cycle. Each attempt takes the lock.
	creditRetryPart = 100
)

// credit records the units that newcomers used beyond the capacity. In any interval of a
// cycle's length they are at most one default share. Limiter.mu guards it.
type credit struct {
	slots [creditSlots + 1]creditSlot // by slot number modulo the length
	width time.Duration               // length of a slot
	last  int64                       // number of the newest slot
	used  int64                       // sum of all slots
	// inCycle is the part of used that belongs to the running cycle.
	inCycle int64
	// held is the number of units of the running cycle that clients cannot use yet, because they
	// used as many on credit in the last cycle. At until all of that credit has expired. latest is the time of
	// the latest use.
	held          int64
	until, latest headgate.Instant
}

// creditSlot is the use in one slot. share is the largest default share of its newcomers.
type creditSlot struct{ used, share int64 }

// stay is the state of a newcomer that found no units.
type stay struct {
	// creditAt is the time before which the newcomer does not try the credit again. shareAt is the
	// time at which it can use its whole share, or 0.
	creditAt, shareAt atomic.Int64

	// Limiter.mu guards the fields below.

	// arrival is the time of the first request of the cycle that found no units, if arrived is true.
	// onCredit is the number of units that it used beyond the capacity in the cycle.
	arrival  headgate.Instant
	arrived  bool
	onCredit int64
	// borrowed is the number of the last cycle in which the newcomer used the credit, or 0.
	borrowed uint64
	// held is the number of units of this cycle that the newcomer cannot use yet, because it used as many
	// on credit in the last cycle.
	held int64
}

// arrive returns the newcomer's stay in the cycle. The caller holds mu.
func (c *client) arrive(now headgate.Instant) *stay {
	s := c.stay.Load()
	if s == nil {
		s = &stay{}
		c.stay.Store(s)
	}
	if !s.arrived {
		s.arrived, s.arrival, c.welcome = true, now, true
	}
	return s
}

// carry keeps the recorded use for a cycle that continues with other settings, or at another time.
func (k *credit) carry(now headgate.Instant, next *cycle) {
	k.held = 0
	for _, x := range next.all {
		if s := x.client.stay.Load(); s != nil {
			s.held = 0
		}
	}
	if k.widthOf(next.Cycle) != k.width || k.number(now) < k.last {
		k.restart(now, next.Cycle)
	}
}

// restart moves all recorded use to now.
func (k *credit) restart(now headgate.Instant, cycle time.Duration) {
	moved := creditSlot{used: k.used, share: k.limit()}
	k.slots = [creditSlots + 1]creditSlot{}
	k.width = k.widthOf(cycle)
	k.last = k.number(now)
	*k.slot(k.last) = moved
}

func (*credit) widthOf(cycle time.Duration) time.Duration {
	return (cycle + creditSlots - 1) / creditSlots
}

// number returns the number of the slot that contains t.
func (k *credit) number(t headgate.Instant) int64 {
	n := int64(t) / int64(k.width)
	if int64(t)%int64(k.width) < 0 {
		n--
	}
	return n
}

func (k *credit) slot(number int64) *creditSlot {
	const length = int64(creditSlots + 1)
	return &k.slots[(number%length+length)%length]
}

// advance removes expired use. After a small step back of the clock it removes nothing.
func (k *credit) advance(now headgate.Instant) {
	n := k.number(now)
	for range min(max(0, n-k.last), int64(len(k.slots))) {
		k.last++
		s := k.slot(k.last)
		k.used -= s.used
		*s = creditSlot{}
	}
	k.last = max(k.last, n)
}

// limit returns the largest default share of the newcomers whose use has not expired.
func (k *credit) limit() (most int64) {
	for i := range k.slots {
		most = max(most, k.slots[i].share)
	}
	return most
}

// take records the use of n units by a newcomer with this default share.
func (k *credit) take(n, share int64) {
	s := k.slot(k.last)
	s.used += n
	s.share = max(s.share, share)
	k.used += n
	k.inCycle += n
}

// putBack removes n used units, the oldest first, so that no remaining use expires too early.
func (k *credit) putBack(n int64) {
	k.inCycle -= n
	for i := range int64(len(k.slots)) {
		s := k.slot(k.last + 1 + i)
		back := min(n, s.used)
		s.used, k.used, n = s.used-back, k.used-back, n-back
	}
}

// isNewcomer reports whether a client can use the credit: in the first cycle in which it
// sends requests and in the next cycle, if its name is trusted or in Weights. The demand of the first
// cycle is that of a part of the cycle. Invented names cannot use the credit, so they cannot use it up.
func (c *cycle) isNewcomer(who *client) bool {
	return (c.TrustNames || who.pinned) && (who.active == 0 || who.active == 1 && who.idle == 0)
}

// borrow admits a newcomer's request for which the cell, with left units, and the pools have too
// few units. It returns the cost for the receipt, or 0 if the request is refused.
func (l *Limiter) borrow(c *cycle, x *cell, now headgate.Instant, left, cost int64) int64 {
	s := x.client.stay.Load()
	if x.used(left)+cost > x.fair.Load() || s != nil && int64(now) < s.creditAt.Load() {
		return 0
	}
	return l.lend(max(now, c.start), x, cost)
}

// lend admits a newcomer's request with held units, or beyond the capacity, if the credit allows it.
func (l *Limiter) lend(now headgate.Instant, x *cell, cost int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, k, fair := l.current.Load(), &l.credit, x.fair.Load()
	if x.left.Load() == closed {
		return 0 // The client's next attempt is in the next cycle.
	}
	s := x.client.arrive(now)
	k.advance(now)
	most := max(fair, k.limit())
	if s.held >= cost && l.course.late(c, now)+k.inCycle+cost <= most+k.held {
		// The late units of the last cycle, the credit of this cycle, and all of its units that are not held, are at
		// most the capacity and one default share.
		s.held -= cost
		k.held -= cost
		x.drawn.Add(cost)
		return cost
	}
	covered := k.covers(c, x, s, cost, most)
	if covered && s.gradual(c, now, cost, fair, most-k.used) {
		k.take(cost, fair)
		k.latest = now
		s.borrowed, s.onCredit = c.number, s.onCredit+cost
		x.drawn.Add(cost)
		return -cost
	}
	s.creditAt.Store(int64(now.Add(c.Cycle / creditRetryPart)))
	switch {
	case covered:
		s.shareAt.Store(int64(s.arrival.Add(c.Cycle / arrivalPart)))
	case s.held > 0:
		s.shareAt.Store(int64(k.until))
	default:
		s.shareAt.Store(0)
	}
	return 0
}

// retryAfter shortens the wait of a refused newcomer that can use its share soon.
func (c *client) retryAfter(wait time.Duration, t headgate.Instant) time.Duration {
	s := c.stay.Load()
	if s == nil {
		return wait
	}
	if soon := headgate.Instant(s.shareAt.Load()).Sub(t); soon > 0 {
		return min(wait, soon)
	}
	return wait
}

// covers reports whether the credit has cost units for a newcomer, within its default share. A
// newcomer uses the credit in one cycle only. A client that was known at the start of the cycle has
// its entitlement under AtOnce. It needs the credit only for its first request, when the entitlement
// is less than one unit.
func (k *credit) covers(c *cycle, x *cell, s *stay, cost, most int64) bool {
	used := x.used(x.left.Load())
	entitled := x.known && c.Reclaim == AtOnce && used > 0
	again := s.borrowed != 0 && s.borrowed != c.number
	return !again && !entitled && used+cost <= x.fair.Load() && k.used+cost <= most
}

// gradual reports whether a newcomer can use cost more units of the credit by now. It uses its
// share evenly within its first tenth of a cycle, and leaves a part of the credit, so that newcomers
// that arrive together are all admitted. The first request passes at once.
func (s *stay) gradual(c *cycle, now headgate.Instant, cost, fair, credit int64) bool {
	since, tenth := max(0, now.Sub(s.arrival)), c.Cycle/arrivalPart
	if s.onCredit == 0 || since >= tenth {
		return true
	}
	return float64(s.onCredit+cost-1) <= float64(fair)*float64(since)/float64(tenth) && cost <= credit-fair/firstPart
}

// begin starts a cycle.
func (k *credit) begin(c *cycle) {
	k.inCycle, k.held, k.until = 0, 0, k.latest.Add(c.Cycle+k.width)
}

// hold takes from a client's opening units as many as it used on credit in the last cycle. Otherwise
// an interval across the end of the cycle could have both. Clients of Weights keep their entitlement.
func (k *credit) hold(c *cycle, x *cell, opening int64) int64 {
	s := x.client.stay.Load()
	switch {
	case s == nil:
		return opening
	case !x.newcomer:
		x.client.stay.Store(nil)
		return opening
	}
	if s.held = min(opening, s.onCredit); x.client.pinned && c.Reclaim == AtOnce {
		s.held = 0
	}
	s.arrived, s.onCredit = false, 0
	k.held += s.held
	return opening - s.held
}

// release gives held units to their clients when the credit of the last cycle has expired.
func (k *credit) release(c *cycle, now headgate.Instant) {
	if k.held == 0 || now < k.until {
		return
	}
	for _, x := range c.all {
		if s := x.client.stay.Load(); s != nil {
			x.give(s.held)
			s.held = 0
		}
	}
	k.held = 0
}

// onCredit reports that the units are beyond the capacity.
func (r *Receipt) onCredit() bool { return r.cost < 0 }

// putBack returns the units of a receipt on credit. It reports false if the cycle has ended.
func (l *Limiter) putBack(r *Receipt) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.cell.left.Load() == closed {
		return false
	}
	r.cell.drawn.Add(r.cost)
	if s := r.cell.client.stay.Load(); s != nil {
		s.onCredit += r.cost
	}
	l.credit.putBack(-r.cost)
	return true
}
