package fairshare

import (
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// Limiter shares a capacity among clients. It is safe for concurrent use. Time is
// an argument: nothing of it runs by itself.
type Limiter struct {
	current  atomic.Pointer[cycle]
	strange  candidates
	attempts attempts

	mu       sync.Mutex // held while a cycle begins or ends, loans are released, clients come, and settings change
	clients  map[string]*client
	others   *client
	returned int // clients that joined in this cycle and had been among the others
	last     usage
	wants    wants
}

// usage is what was used of the capacity of a cycle.
type usage struct{ admitted, capacity int64 }

// New makes a Limiter whose first cycle is the one of now. The error names the
// setting that does not fit.
func New(now headgate.Instant, c Config) (*Limiter, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	l := &Limiter{clients: map[string]*client{}, others: newClient(Others, 1)}
	s := newSettings(c)
	l.pin(s)
	l.attempts.follow(s.CountOnce)
	l.begin(s, 1, s.startOf(sane(now)))
	return l, nil
}

// Request is one attempt.
type Request struct {
	// Client is who asks. It is looked at during the call alone.
	Client string
	// Cost is in units; less than 1 counts as 1.
	Cost int64
	// ID tells the attempts of one request from those of others; "" is none. It is
	// looked at under CountOnce alone.
	ID string
}

// Receipt is what a Decision took. The zero Receipt is of nothing.
type Receipt struct {
	cell *cell
	cost int64
	// attempt is the hash of the request's id, if that counts, and again says that
	// another attempt at it has counted.
	attempt uint64
	again   bool
}

// Take decides a request at now.
//
// The Decision has as Limit what the client may use of this cycle, as Remaining what
// of it is left, as ResetAfter the time to the next cycle, and for a refusal as
// RetryAfter a time within the first half of the next cycle. Its At is now, or the
// start of the cycle that it was counted in when that is later. Its own Receipt is
// empty: what was taken is in the one beside it. The reason is WithinLimit,
// OverShare, or Never for a cost above the whole capacity.
//
// A client that is known and within its share costs a lookup and one atomic
// operation, a refused one likewise. Nothing is allocated but for new names.
func (l *Limiter) Take(now headgate.Instant, r Request) (d headgate.Decision, receipt Receipt) {
	cost := max(1, r.Cost)
	now = sane(now)
	for {
		c := l.current.Load()
		if c == nil {
			return headgate.Undecided(), Receipt{} // New did not make the Limiter.
		}
		if at := c.stage.due.Load(); int64(now) >= at || now < c.start {
			c = l.advance(c, now)
		}
		x := c.find(r.Client)
		if x == nil {
			if x = l.stranger(c, now, r.Client); x == nil {
				continue // Another cycle has begun, or a client joined.
			}
		}
		left, outcome := c.take(x, now, cost)
		if outcome == over {
			l.await()
			continue
		}
		if cost > 1 {
			x.client.bears(c.counted(cost))
		}
		receipt.cell, receipt.cost = x, cost
		if c.CountOnce && r.ID != "" {
			receipt.attempt, receipt.again = l.attempts.note(c.number, r.Client, r.ID)
			if receipt.again {
				x.client.repeated.Add(c.counted(cost))
			}
		}
		if outcome == taken {
			c.admit(&d, x, max(now, c.start), left)
			return d, receipt
		}
		c.refuse(&d, x, max(now, c.start), cost)
		return d, Receipt{}
	}
}

// sane keeps times away from the ends of what an Instant can say, for which there is
// no next cycle.
func sane(t headgate.Instant) headgate.Instant {
	const most = headgate.Instant(math.MaxInt64 - 2*MostCycle)
	return max(-most, min(t, most))
}

// Return gives back what was taken for a request that is not made after all. It
// then counts neither as admitted nor as demand. After the cycle has ended, or a
// Reload, it does nothing. It is called once at most.
func (l *Limiter) Return(r Receipt) {
	switch {
	case r.cell == nil || !r.cell.put(r.cost):
	case r.again:
		r.cell.client.repeated.Add(-r.cost)
	case r.attempt != 0:
		l.attempts.forget(r.attempt)
	}
}

// await waits until whoever changes the cycle has done so.
func (l *Limiter) await() {
	l.mu.Lock()
	l.mu.Unlock() //nolint:gocritic,staticcheck // It is the waiting that is wanted.
}

// advance makes now the present: a new cycle begins if the last one has ended, and
// loans are released when that is due.
func (l *Limiter) advance(c *cycle, now headgate.Instant) *cycle {
	switch {
	case c.holds(now):
		if l.mu.TryLock() { // Who finds it locked is decided on what there is.
			defer l.mu.Unlock()
			l.releaseIfDue(now)
		}
	case now < c.start && !c.longBefore(now):
		// The clock went back a little, or the caller is late: the cycle goes on.
	default:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.follow(now)
		l.releaseIfDue(now)
	}
	return l.current.Load()
}

func (l *Limiter) releaseIfDue(now headgate.Instant) {
	if c := l.current.Load(); c.holds(now) && int64(now) >= c.stage.due.Load() {
		l.release(c, now)
	}
}

// follow is advance to another cycle. mu is held.
func (l *Limiter) follow(now headgate.Instant) {
	c := l.current.Load()
	switch {
	case c.longBefore(now), now >= c.end && c.from != c.start && c.startOf(now) == c.from:
		// The clock went back so far that the cycle would not end for long: what is used of
		// it stays used in that of the new time, and when the clock is back where it came from.
		l.carry(c, now, c.settings)
	case now >= c.end:
		l.roll(c, now)
	}
}

// Reload makes c what the limiter shares from now on, in mid-cycle: what was used
// stays used, and clients stay known. On an error nothing changes.
func (l *Limiter) Reload(now headgate.Instant, c Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	now = sane(now)
	if l.current.Load() == nil {
		return headgate.ErrNotMade
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follow(now)
	s := newSettings(c)
	l.attempts.follow(s.CountOnce)
	old := l.current.Load()
	now = max(now, old.start)
	l.pin(s)
	l.carry(old, now, s)
	return nil
}

// settings are a Config with what follows from it. They are immutable.
type settings struct {
	Config

	// Between two releases of loans lie slow at the most and quick at the least.
	slow, quick time.Duration
}

const (
	// A cycle has some hundred releases, more densely towards its end, where what is
	// held back is lost.
	slowest    = 10 * time.Millisecond
	slowPart   = 100
	quickPart  = 1000
	endingPart = 16
)

func newSettings(c Config) *settings {
	c.Weights = maps.Clone(c.Weights)
	return &settings{Config: c, slow: min(c.Cycle/slowPart, slowest), quick: min(c.Cycle/quickPart, slowest)}
}

// startOf gives the start of the aligned cycle that t is in.
func (s *settings) startOf(t headgate.Instant) headgate.Instant {
	w := headgate.Instant(s.Cycle)
	into := t % w
	if into < 0 {
		into += w
	}
	return t - into
}

// next gives when loans are released after now.
func (c *cycle) next(now headgate.Instant) headgate.Instant {
	if c.Reclaim == NextCycle {
		return c.end
	}
	return min(c.end, now.Add(min(c.slow, max(c.quick, c.end.Sub(now)/endingPart))))
}
