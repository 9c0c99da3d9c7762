package fairshare

import (
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// Limiter shares a capacity among clients. It is safe for concurrent use. It starts no
// goroutine and reads no clock: time is an argument.
type Limiter struct {
	current    atomic.Pointer[cycle]
	candidates candidates
	attempts   attempts

	mu       sync.Mutex // held while a cycle starts or ends, loans are released, a client joins, or settings change
	clients  map[string]*client
	others   *client
	returned int // number of clients that moved from Others to a share of their own in this cycle
	last     usage
	wants    wants
	credit   credit
	course   course
}

// usage is the number of admitted units and the capacity of a cycle.
type usage struct{ admitted, capacity int64 }

// New returns a Limiter whose first cycle contains now. The error names the invalid
// setting.
func New(now headgate.Instant, c Config) (*Limiter, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	l := &Limiter{clients: map[string]*client{}, others: newClient(Others, 1)}
	l.candidates.seed = c.Seed
	s := newSettings(c)
	l.pin(s)
	l.attempts.enable(s.CountOnce, c.Seed)
	l.credit.restart(clampTime(now), s.Cycle)
	l.begin(s, 1, s.startOf(clampTime(now)))
	return l, nil
}

// Request is one attempt at a request.
type Request struct {
	// Client is the name of the client. Take keeps no reference to the string.
	Client string
	// Cost is in units. A cost below 1 counts as 1.
	Cost int64
	// ID identifies the request across its attempts; "" means no ID. Take uses the ID only
	// under CountOnce.
	ID string
}

// Receipt records the units that a Decision took. The zero Receipt records nothing.
type Receipt struct {
	cell *cell
	// cost is negative for units on credit: another field would slow down Take.
	cost int64
	// attempt is the hash of the request's ID, or 0. again reports that another attempt
	// at the request has already counted.
	attempt uint64
	again   bool
}

// Take decides a request at now.
//
// In the Decision, Limit is what the client can use of this cycle, and Remaining the
// unused part of Limit. ResetAfter is the time to the next cycle. After a refusal,
// RetryAfter points into the first half of the next cycle. At is now, or the start of
// the counting cycle if that start is later. The reason is WithinLimit, OverShare, or
// Never for a cost above the whole capacity. The Receipt inside the Decision is empty. Use the
// second result to return the units.
//
// A decision on a known client usually costs a lookup and one atomic operation. Take
// allocates memory only for new names.
func (l *Limiter) Take(now headgate.Instant, r Request) (d headgate.Decision, receipt Receipt) {
	cost := max(1, r.Cost)
	now = clampTime(now)
	for {
		c := l.current.Load()
		if c == nil {
			return headgate.Undecided(), Receipt{} // New did not make the Limiter.
		}
		if at := c.pools.due.Load(); int64(now) >= at || now < c.start {
			c = l.advance(c, now)
		}
		x := c.find(r.Client)
		if x == nil {
			if x = l.joinOrOthers(c, now, r.Client); x == nil {
				continue // Another cycle has started, or a client joined.
			}
		}
		left, outcome := c.take(x, now, cost)
		if outcome == over {
			l.await()
			continue
		}
		if cost > 1 {
			x.client.noteCost(c.counted(cost))
		}
		receipt.cell, receipt.cost = x, cost
		if c.CountOnce && r.ID != "" {
			receipt.attempt, receipt.again = l.noteAttempt(c, x, &r)
		}
		if outcome == taken {
			c.admit(&d, x, max(now, c.start), left)
			return d, receipt
		}
		if x.newcomer {
			if receipt.cost = l.borrow(c, x, now, left, cost); receipt.cost != 0 {
				c.admit(&d, x, max(now, c.start), left)
				return d, receipt
			}
		}
		c.refuse(&d, x, max(now, c.start), cost)
		return d, Receipt{}
	}
}

// noteAttempt records an attempt at a request with an ID. again reports that another attempt has
// already counted.
func (l *Limiter) noteAttempt(c *cycle, x *cell, r *Request) (attempt uint64, again bool) {
	attempt, again = l.attempts.note(c.number, r.Client, r.ID)
	if again {
		x.client.repeated.Add(c.counted(max(1, r.Cost)))
	}
	return attempt, again
}

// clampTime keeps t away from the bounds of an Instant, where no next cycle can be
// represented.
func clampTime(t headgate.Instant) headgate.Instant {
	const most = headgate.Instant(math.MaxInt64 - 2*MostCycle)
	return max(-most, min(t, most))
}

// Return gives back the units of a request that will not be executed. The request then
// counts neither as admitted nor as demand. Return does nothing after the end of the
// cycle or after a Reload. Call it at most once for each Receipt.
func (l *Limiter) Return(r Receipt) {
	switch {
	case r.cell == nil, r.cost > 0 && !r.cell.put(r.cost), r.cost < 0 && !l.putBack(&r):
	case r.again:
		r.cell.client.repeated.Add(-max(r.cost, -r.cost))
	case r.attempt != 0:
		l.attempts.forget(r.attempt)
	}
}

// await waits until the holder of mu has replaced the cycle.
func (l *Limiter) await() {
	l.mu.Lock()
	l.mu.Unlock() //nolint:gocritic,staticcheck // The call only waits for the lock.
}

// advance brings the limiter to now. It starts a new cycle if the current one has ended,
// and releases loans when a release is due.
func (l *Limiter) advance(c *cycle, now headgate.Instant) *cycle {
	switch {
	case c.contains(now):
		if l.mu.TryLock() { // If mu is locked, the caller decides with the current units.
			defer l.mu.Unlock()
			l.releaseIfDue(now)
		}
	case now < c.start && !c.longBefore(now):
		// The clock stepped back slightly, or the caller is late: the cycle continues.
	default:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.moveTo(now)
		l.releaseIfDue(now)
	}
	return l.current.Load()
}

func (l *Limiter) releaseIfDue(now headgate.Instant) {
	c := l.current.Load()
	if !c.contains(now) || int64(now) < c.pools.due.Load() {
		return
	}
	l.credit.release(c, now)
	due := headgate.Instant(c.pools.due.Load())
	c.pools.due.Store(int64(c.next(now)))
	if c.Reclaim == NextCycle || now < c.start.Add(c.slow) {
		l.course.note(c, due, c.used())
		return
	}
	l.course.note(c, due, l.release(c, now))
}

// moveTo replaces the cycle if now requires another one. The caller holds mu.
func (l *Limiter) moveTo(now headgate.Instant) {
	c := l.current.Load()
	switch {
	case c.longBefore(now), now >= c.end && c.from != c.start && c.startOf(now) == c.from:
		// The clock stepped back so far that the cycle would not end for a long time. The usage
		// moves to the cycle of the new time, and moves again when the clock is corrected.
		l.carry(c, now, c.settings)
	case now >= c.end:
		l.roll(c, now)
	}
}

// Reload replaces the configuration during a cycle. Used units stay used, and clients
// stay known. After an error the old configuration stays in effect.
func (l *Limiter) Reload(now headgate.Instant, c Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	now = clampTime(now)
	if l.current.Load() == nil {
		return headgate.ErrNotMade
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moveTo(now)
	s := newSettings(c)
	l.attempts.enable(s.CountOnce, c.Seed)
	old := l.current.Load()
	now = max(now, old.start)
	l.pin(s)
	l.carry(old, now, s)
	return nil
}

// settings are a Config with derived values. They are immutable.
type settings struct {
	Config

	// slow is the longest interval between two releases of loans, and quick the shortest.
	slow, quick time.Duration
}

const (
	// A cycle has at least a hundred releases. They are more frequent towards its end, because
	// units that are unused at the end are lost.
	slowest    = 10 * time.Millisecond
	slowPart   = 100
	quickPart  = 1000
	endingPart = 16
)

func newSettings(c Config) *settings {
	c.Weights = maps.Clone(c.Weights)
	return &settings{Config: c, slow: min(c.Cycle/slowPart, slowest), quick: min(c.Cycle/quickPart, slowest)}
}

// startOf returns the start of the aligned cycle that contains t.
func (s *settings) startOf(t headgate.Instant) headgate.Instant {
	w := headgate.Instant(s.Cycle)
	into := t % w
	if into < 0 {
		into += w
	}
	return t - into
}

// next returns the time of the first release of loans after now. Under NextCycle the use is recorded
// at this time.
func (c *cycle) next(now headgate.Instant) headgate.Instant {
	if first := c.start.Add(c.slow); now < first {
		return min(c.end, first)
	}
	if c.Reclaim == NextCycle {
		if !c.TrustNames && len(c.Weights) == 0 {
			return c.end // There are no newcomers that could use the credit.
		}
		return min(c.end, now.Add(c.Cycle/creditSlots))
	}
	return min(c.end, now.Add(min(c.slow, max(c.quick, c.end.Sub(now)/endingPart))))
}
