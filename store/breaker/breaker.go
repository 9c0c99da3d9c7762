package breaker

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Config says when a Breaker opens and how it probes. The zero Config is ready to use.
type Config struct {
	// Failures is how many calls must fail in a row to open it; 0 is 5.
	Failures int
	// Probe is the wait from the opening to the first probe; 0 is 100ms.
	Probe time.Duration
	// MaxProbe bounds the wait between probes, which each failed one doubles; 0 is 2s.
	MaxProbe time.Duration
	// Lease is how long a probe may take to report before it counts as failed and
	// another may go; 0 is MaxProbe.
	Lease time.Duration
	// Jitter gives numbers in [0, 1): each wait is shortened by that part of its half, so
	// that many instances do not probe together. nil shortens none. It is called
	// under a lock and from several goroutines, one at a time.
	Jitter func() float64
}

// What the zero Config means.
const (
	defaultFailures = 5
	defaultProbe    = 100 * time.Millisecond
	defaultMaxProbe = 2 * time.Second
)

// State says what a Breaker does with calls.
type State uint8

const (
	// Closed lets every call go.
	Closed State = iota
	// Open refuses calls until the next probe.
	Open
	// HalfOpen refuses calls while a probe is in flight.
	HalfOpen
)

// String gives "closed", "open" or "half_open".
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half_open"
	default:
		return fmt.Sprintf("state(%d)", uint8(s))
	}
}

// What Breaker.gate says.
const (
	calm     uint32 = iota // Closed, and no failure to remember.
	troubled               // Closed, after failures in a row.
	shut                   // Open or HalfOpen.
)

// Breaker is safe for concurrent use. While nothing is wrong, Allow and Succeeded
// cost one atomic load each, and they never allocate.
type Breaker struct {
	config Config
	gate   atomic.Uint32
	// next is when the next probe may go, in nanoseconds; it is read without mu.
	next    atomic.Int64
	refused atomic.Uint64

	mu       sync.Mutex
	state    State
	failures int
	wait     time.Duration
	openedAt time.Duration
	// closedAt is when it closed last. Until it has, all results count.
	closedAt time.Duration
	// probe is when the probe in flight began.
	probe  time.Duration
	opened uint64
}

// New makes a closed Breaker. Settings that are not positive are the defaults.
func New(c Config) *Breaker {
	if c.Failures <= 0 {
		c.Failures = defaultFailures
	}
	if c.Probe <= 0 {
		c.Probe = defaultProbe
	}
	if c.MaxProbe <= 0 {
		c.MaxProbe = defaultMaxProbe
	}
	c.MaxProbe = max(c.MaxProbe, c.Probe)
	if c.Lease <= 0 {
		c.Lease = c.MaxProbe
	}
	return &Breaker{config: c, wait: c.Probe, closedAt: math.MinInt64}
}

// Allow says whether a call may go at now. Who gets true must call and then tell
// the result with Done, or Unknown; in both it names this now as the time the call
// began. Who gets false answers by its fallback. Refusing takes no lock.
func (b *Breaker) Allow(now time.Duration) bool {
	if b.gate.Load() != shut {
		return true
	}
	if int64(now) < b.next.Load() || !b.mayProbe(now) {
		b.refused.Add(1)
		return false
	}
	return true
}

// Refuses says whether Allow would refuse a call at now, and counts that as a refusal.
// It begins no probe: who needs several stores for one answer asks all their breakers first, and
// takes nothing anywhere when one is away. It takes no lock.
func (b *Breaker) Refuses(now time.Duration) bool {
	if b.gate.Load() != shut || int64(now) >= b.next.Load() {
		return false
	}
	b.refused.Add(1)
	return true
}

// mayProbe makes the caller's call the probe, unless another has come first.
func (b *Breaker) mayProbe(now time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == Closed {
		return true
	}
	if int64(now) < b.next.Load() {
		return false
	}
	if b.state == HalfOpen {
		b.backOff() // The probe before this one never reported.
	}
	b.state, b.probe = HalfOpen, now
	b.next.Store(int64(later(now, b.config.Lease)))
	return true
}

// Done tells the result of a call that began at began and ended at now. It gives
// the state after it, and whether this very result opened or closed the breaker:
// of all callers exactly one is told of each opening and of each closing, for one
// log line. Probes come and go untold.
func (b *Breaker) Done(began, now time.Duration, ok bool) (State, bool) {
	if ok {
		return b.Succeeded(began, now)
	}
	return b.Failed(began, now)
}

// Succeeded is Done of a call that was answered. Whatever the store answered, over
// the limit included, is a success.
func (b *Breaker) Succeeded(began, now time.Duration) (State, bool) {
	if b.gate.Load() == calm {
		return Closed, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.state == Closed:
		if began >= b.closedAt {
			b.failures = 0
			b.gate.Store(calm)
		}
	case began > b.openedAt:
		b.close(now)
		return Closed, true
	}
	return b.state, false
}

// Failed is Done of a call that was not answered, or with a failure of the store's.
func (b *Breaker) Failed(began, now time.Duration) (State, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.state {
	case Closed:
		if began < b.closedAt {
			return Closed, false
		}
		b.failures++
		b.gate.Store(troubled)
		if b.failures >= b.config.Failures {
			b.open(now)
			return Open, true
		}
	case HalfOpen:
		if began == b.probe {
			b.backOff()
			b.shutUntil(now)
		}
	case Open: // That the store is away is known.
	}
	return b.state, false
}

// Unknown tells that a call ended in a way that says nothing of the store: its
// caller gave up first, say. If it was the probe, another may go at once.
func (b *Breaker) Unknown(began time.Duration) {
	if b.gate.Load() != shut {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == HalfOpen && began == b.probe {
		b.state = Open
		b.next.Store(int64(began))
	}
}

// open refuses calls from now on; mu is held.
func (b *Breaker) open(now time.Duration) {
	b.openedAt = now
	b.opened++
	b.wait = b.config.Probe
	b.shutUntil(now)
	b.gate.Store(shut)
}

// shutUntil sets the time of the next probe, one wait from now; mu is held.
func (b *Breaker) shutUntil(now time.Duration) {
	b.state = Open
	wait := b.wait
	if b.config.Jitter != nil {
		part := min(max(b.config.Jitter(), 0), 1)
		wait -= time.Duration(part * float64(wait/2))
	}
	b.next.Store(int64(later(now, wait)))
}

// backOff doubles the wait for the next probe; mu is held.
func (b *Breaker) backOff() {
	if b.wait > b.config.MaxProbe/2 {
		b.wait = b.config.MaxProbe
	} else {
		b.wait *= 2
	}
}

// close lets calls go from now on; mu is held.
func (b *Breaker) close(now time.Duration) {
	b.state, b.closedAt, b.failures = Closed, now, 0
	b.gate.Store(calm)
}

// later gives t + d, or the greatest time there is.
func later(t, d time.Duration) time.Duration {
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}
