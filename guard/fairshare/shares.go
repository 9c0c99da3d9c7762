package fairshare

import (
	"cmp"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/sorting"
)

// Shares describes the current cycle and the share of every client.
type Shares struct {
	// Cycle counts the cycles since the start; the first is 1.
	Cycle uint64
	// Start is the start of the cycle, and End the start of the next cycle.
	Start, End headgate.Instant
	// Length is the length of a cycle.
	Length time.Duration
	// Capacity is the number of units that are shared, and Admitted the number of units
	// used so far.
	Capacity, Admitted int64
	// LastAdmitted is the number of units used in the previous cycle, and LastCapacity that
	// cycle's capacity.
	LastAdmitted, LastCapacity int64
	// Clients are ordered by name. Others is included if it was used recently.
	Clients []Share
}

// Share describes one client, in units.
type Share struct {
	Client string
	// Weight is the client's weight, and Default its default share.
	Weight, Default int64
	// Demand is the demand of the last full cycle, from which Size was computed. For a
	// client that had just joined, it counts as at least the default share.
	Demand, Size int64
	// Borrowed is the part of Size above Default, and Lent the difference if Size is below
	// Default.
	Borrowed, Lent int64
	// Seen is the number of units requested in this cycle. Admitted and Refused are the
	// units admitted and refused.
	Seen, Admitted, Refused int64
	// AdmittedTotal and RefusedTotal count since the client became known. AdmittedCounter is
	// AdmittedTotal for monitoring systems that treat a falling counter as a restart. When
	// units are returned, AdmittedCounter stays until AdmittedTotal has caught up.
	AdmittedTotal, RefusedTotal, AdmittedCounter uint64
	// Pinned reports that the client is in Config.Weights and is never forgotten.
	Pinned bool
	// Lasting reports that the client has been established for [Lasting], so that later
	// names do not reduce its default share.
	Lasting bool
}

// Shares returns the share of every client at now.
func (l *Limiter) Shares(now headgate.Instant) Shares {
	now = clampTime(now)
	if l.current.Load() == nil {
		return Shares{} // New did not make the Limiter.
	}
	if c := l.current.Load(); int64(now) >= c.pools.due.Load() || now < c.start {
		l.advance(c, now)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.current.Load()
	s := Shares{
		Cycle: c.number, Start: c.start, End: c.end, Length: c.Cycle, Capacity: c.Capacity,
		LastAdmitted: l.last.admitted, LastCapacity: l.last.capacity, Admitted: c.removedUnits,
	}
	for _, x := range c.all {
		one := x.share()
		s.Admitted += one.Admitted
		s.Clients = append(s.Clients, one)
	}
	sorting.Func(s.Clients, func(a, b Share) int { return cmp.Compare(a.Client, b.Client) })
	return s
}

// share describes one cell. The caller holds mu.
func (x *cell) share() Share {
	who, fair, size := x.client, x.fair.Load(), x.size.Load()
	refused := who.refused.Load()
	used := max(0, x.used(x.left.Load()))
	total := who.total(used)
	who.shown = max(who.shown, total)
	return Share{
		Client: who.name, Weight: who.weight, Pinned: who.pinned, Lasting: who.lasting(), Default: fair, Demand: who.demand, Size: size,
		Borrowed: max(0, size-fair), Lent: max(0, fair-size),
		Seen: who.seen(used), Admitted: used, Refused: int64(refused - who.fromRefused),
		AdmittedTotal: uint64(max(0, total)), RefusedTotal: refused, AdmittedCounter: uint64(who.shown),
	}
}

// total returns the units admitted since the client became known, given the units used in
// the running cycle. The caller holds mu.
func (c *client) total(used int64) int64 { return c.admitted + used + c.late.Load() }
