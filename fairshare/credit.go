package fairshare

import (
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
	// earlyPart is the part of a cycle in which use counts as a burst at the cycle's start.
	earlyPart = 20
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
	// inCycle is the part of used that belongs to the running cycle. early is the number of
	// units that all clients used in the first part of the cycle, if earlyKnown.
	inCycle, early int64
	earlyKnown     bool
}

// creditSlot is the use in one slot. share is the largest default share of its newcomers.
type creditSlot struct{ used, share int64 }

// carry keeps the recorded use for a cycle that continues with other settings, or at another time.
func (k *credit) carry(now headgate.Instant, next *cycle) {
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
	for _, s := range k.slots {
		most = max(most, s.share)
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

// late returns the units that all clients used in the cycle after its first part.
func (k *credit) late(c *cycle) int64 {
	if !k.earlyKnown {
		return 0
	}
	return c.used() - k.early
}

// noteEarly records the use in the first part of the cycle, when that part has passed.
func (k *credit) noteEarly(c *cycle, now headgate.Instant) {
	if !k.earlyKnown && now >= c.earlyEnd() {
		k.early, k.earlyKnown = c.used(), true
	}
}

func (c *cycle) earlyEnd() headgate.Instant { return c.start.Add(c.Cycle / earlyPart) }

// used returns the units that all clients used in the cycle.
func (c *cycle) used() int64 {
	sum := c.removedUnits
	for _, x := range c.all {
		sum += x.used(x.left.Load())
	}
	return sum
}

// isNewcomer reports whether a client can use the credit: in the first cycle in which it
// sends requests and in the next cycle, if its name is trusted or in Weights. The demand of the first
// cycle is that of a part of the cycle. Invented names cannot use the credit, so they cannot use it up.
func (c *cycle) isNewcomer(who *client) bool {
	return (c.TrustNames || who.pinned) && (who.active == 0 || who.active == 1 && who.idle == 0)
}

// canBorrow reports whether a refused request of a newcomer is within its default share, and
// the credit was not refused a moment ago.
func (c *cycle) canBorrow(x *cell, now headgate.Instant, cost int64) bool {
	return x.newcomer && x.used(x.left.Load())+cost <= x.fair.Load() && int64(now) >= x.client.creditAt.Load()
}

// borrow admits a newcomer's request beyond the capacity, if the credit allows it.
func (l *Limiter) borrow(x *cell, now headgate.Instant, cost int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, who := l.current.Load(), x.client
	if x.left.Load() == closed {
		return false // The client's next attempt is in the next cycle.
	}
	now = max(now, c.start)
	if !who.arrived {
		who.arrived, who.arrival, who.welcome = true, now, true
	}
	l.credit.advance(now)
	l.credit.noteEarly(c, now)
	grantable := l.credit.covers(c, x, cost)
	if grantable && who.gradual(c, x.fair.Load(), now, cost) {
		l.credit.take(cost, x.fair.Load())
		who.onCredit += cost
		x.drawn.Add(cost)
		return true
	}
	who.creditAt.Store(int64(now.Add(c.Cycle / creditRetryPart)))
	who.shareAt.Store(0)
	if grantable {
		who.shareAt.Store(int64(who.arrival.Add(c.Cycle / arrivalPart)))
	}
	return false
}

// covers reports whether the credit has cost units for a newcomer. All newcomers together use at
// most one default share in any interval of a cycle's length. A newcomer uses at most its
// default share of the cycle. If the clients used units late in the cycle, the newcomer uses
// only its entitlement. Otherwise an interval across the end of the cycle would have the late
// units, the credit, and the newcomer's share of the next cycle.
func (k *credit) covers(c *cycle, x *cell, cost int64) bool {
	fair, used := x.fair.Load(), x.used(x.left.Load())
	most := max(fair, k.limit())
	switch {
	case k.used+cost > most || used+cost > fair:
		return false
	case used == 0 || used+cost <= c.part(fair, x.client.arrival):
		return true
	}
	return k.late(c)+cost <= most
}

// gradual reports whether a newcomer can use cost more units by now. It uses its share evenly
// within the first part of its stay, so that newcomers that arrive together are all
// admitted. The first request passes at once.
func (c *client) gradual(in *cycle, fair int64, now headgate.Instant, cost int64) bool {
	since, most := max(0, now.Sub(c.arrival)), in.Cycle/arrivalPart
	return c.onCredit == 0 || since >= most || float64(c.onCredit+cost-1) <= float64(fair)*float64(since)/float64(most)
}

// retry shortens the RetryAfter of a newcomer that can use its share soon.
func (x *cell) retry(d *headgate.Decision, now headgate.Instant) {
	if wait := headgate.Instant(x.client.shareAt.Load()).Sub(now); wait > 0 && d.RetryAfter > 0 {
		d.RetryAfter = min(d.RetryAfter, wait)
	}
}

// putBack returns the units of a receipt to where they came from. It reports false if the
// cycle has ended.
func (l *Limiter) putBack(r *Receipt) bool {
	if !r.onCredit {
		return r.cell.put(r.cost)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.cell.left.Load() == closed {
		return false
	}
	r.cell.drawn.Add(-r.cost)
	r.cell.client.onCredit -= r.cost
	l.credit.putBack(r.cost)
	return true
}
