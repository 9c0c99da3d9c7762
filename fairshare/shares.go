package fairshare

import (
	"cmp"
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// Shares is who has what in the current cycle.
type Shares struct {
	// Cycle counts the cycles since the start; the first is 1.
	Cycle uint64
	// Start is when it began, and End when the next begins.
	Start, End headgate.Instant
	// Length is how long a cycle is.
	Length time.Duration
	// Capacity is what is shared, and Admitted what of it is used, in units.
	Capacity, Admitted int64
	// LastAdmitted is what was used of the capacity of the cycle before, LastCapacity.
	LastAdmitted, LastCapacity int64
	// Clients are ordered by name. Others is among them while it has been used lately.
	Clients []Share
}

// Share is what one client has, in units.
type Share struct {
	Client string
	// Weight is its part, and Default its default share.
	Weight, Default int64
	// Demand is that of the last full cycle, which Size came from; that of one who had
	// just joined then counts as its default share at least.
	Demand, Size int64
	// Borrowed is what Size is above Default, and Lent what it is below.
	Borrowed, Lent int64
	// Seen is what it asked for in this cycle, Admitted and Refused what became of it.
	Seen, Admitted, Refused int64
	// AdmittedTotal and RefusedTotal count since the client is known. AdmittedCounter is
	// the former for those who take a count that falls for one that began anew: when
	// something is returned it waits.
	AdmittedTotal, RefusedTotal, AdmittedCounter uint64
	// Pinned says that it is one of Config.Weights, and never forgotten.
	Pinned bool
	// Lasting says that it was established an hour ago, so that later names leave it its
	// default share.
	Lasting bool
}

// Shares tells who has what at now.
func (l *Limiter) Shares(now headgate.Instant) Shares {
	now = sane(now)
	if l.current.Load() == nil {
		return Shares{} // New did not make the Limiter.
	}
	if c := l.current.Load(); int64(now) >= c.stage.due.Load() || now < c.start {
		l.advance(c, now)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.current.Load()
	s := Shares{
		Cycle: c.number, Start: c.start, End: c.end, Length: c.Cycle, Capacity: c.Capacity,
		LastAdmitted: l.last.admitted, LastCapacity: l.last.capacity, Admitted: c.gone,
	}
	for _, x := range c.all {
		one := x.share()
		s.Admitted += one.Admitted
		s.Clients = append(s.Clients, one)
	}
	slices.SortFunc(s.Clients, func(a, b Share) int { return cmp.Compare(a.Client, b.Client) })
	return s
}

// share tells of one cell. mu is held.
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

// total gives what was admitted since the client is known, when it has used so much of
// the running cycle. mu is held.
func (c *client) total(used int64) int64 {
	if c.last != nil {
		used += c.last.drawn.Load() - c.lastDrawn
	}
	return c.admitted + used
}
