package breaker

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Config sets when a Breaker opens and how it probes. The zero Config is ready to use.
type Config struct {
	// Failures is the number of failed calls in a row that opens the Breaker; 0 is 5.
	Failures int
	// Probe is the wait from the opening to the first probe; 0 is 100ms.
	Probe time.Duration
	// MaxProbe bounds the wait between probes. Each failed probe doubles the wait. 0 is 2s.
	MaxProbe time.Duration
	// Lease is how long a probe may take. A probe without a result then counts as failed, and
	// the next probe may go. 0 is MaxProbe.
	Lease time.Duration
	// Jitter gives numbers in [0, 1). Each wait is shortened by that fraction of its half, so
	// that many instances do not probe together. nil shortens no wait. The Breaker calls
	// Jitter under its lock: from several goroutines, one at a time.
	Jitter func() float64
}

// The defaults of Config.
const (
	defaultFailures = 5
	defaultProbe    = 100 * time.Millisecond
	defaultMaxProbe = 2 * time.Second
)

// State is what a Breaker does with calls.
type State uint8

const (
	// Closed allows every call.
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

// The values of Breaker.gate.
const (
	calm     uint32 = iota // Closed, and the last call succeeded.
	troubled               // Closed, and the last calls failed.
	shut                   // Open or HalfOpen.
)

// Breaker is safe for concurrent use. While calls succeed, Allow and Succeeded cost one
// atomic load each. They never allocate.
type Breaker struct {
	config Config
	gate   atomic.Uint32
	// next is the time of the next probe, in nanoseconds. It is read without mu.
	next    atomic.Int64
	refused atomic.Uint64

	mu       sync.Mutex
	state    State
	failures int
	wait     time.Duration
	openedAt time.Duration
	// closedAt is when the Breaker last closed. Before the first closing, all results count.
	closedAt time.Duration
	// probe is when the probe in flight began.
	probe  time.Duration
	opened uint64
}

// New makes a closed Breaker. A setting that is not positive has its default.
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

// Allow reports whether a call may go at now. On true, the caller makes the call and then
// reports its result with Done, or calls Unknown, with the same now as the beginning of
// the call. On false, the caller uses its fallback. A refusal takes no lock.
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

// Refuses reports whether Allow would refuse a call at now, and counts true as a refusal.
// Refuses begins no probe. A caller that needs several stores for one decision checks all
// their breakers first, and takes nothing when one store is unreachable. Refuses takes no
// lock.
func (b *Breaker) Refuses(now time.Duration) bool {
	if b.gate.Load() != shut || int64(now) >= b.next.Load() {
		return false
	}
	b.refused.Add(1)
	return true
}

// mayProbe makes the caller's call the probe, unless another call already is.
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
		b.backOff() // The previous probe never reported a result.
	}
	b.state, b.probe = HalfOpen, now
	b.next.Store(int64(later(now, b.config.Lease)))
	return true
}

// Done reports the result of a call that began at began and ended at now. Done gives the
// state afterwards, and whether this result opened or closed the Breaker. Exactly one
// caller gets true for each opening and each closing, so that it writes one log line. The
// beginning and the failure of a probe are not reported.
func (b *Breaker) Done(began, now time.Duration, ok bool) (State, bool) {
	if ok {
		return b.Succeeded(began, now)
	}
	return b.Failed(began, now)
}

// Succeeded is Done for an answered call. Every answer of the store is a success, also over
// the limit.
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

// Failed is Done for a call without an answer, or with an error of the store.
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
	case Open: // An open Breaker learns nothing from a failure.
	}
	return b.state, false
}

// ProbeWithin makes the next probe of an open Breaker due at most within after now. Call it after Failed,
// when a failure says that the store may be right again sooner than the waits between probes.
func (b *Breaker) ProbeWithin(now, within time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == Open {
		b.next.Store(min(b.next.Load(), int64(later(now, within))))
	}
}

// Unknown reports a call that says nothing about the store: for example, its caller cancelled
// it. If the call was the probe, another probe may go at once.
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

// open refuses calls from now on. The caller holds mu.
func (b *Breaker) open(now time.Duration) {
	b.openedAt = now
	b.opened++
	b.wait = b.config.Probe
	b.shutUntil(now)
	b.gate.Store(shut)
}

// shutUntil sets the time of the next probe, one wait after now. The caller holds mu.
func (b *Breaker) shutUntil(now time.Duration) {
	b.state = Open
	wait := b.wait
	if b.config.Jitter != nil {
		part := min(max(b.config.Jitter(), 0), 1)
		wait -= time.Duration(part * float64(wait/2))
	}
	b.next.Store(int64(later(now, wait)))
}

// backOff doubles the wait for the next probe. The caller holds mu.
func (b *Breaker) backOff() {
	if b.wait > b.config.MaxProbe/2 {
		b.wait = b.config.MaxProbe
	} else {
		b.wait *= 2
	}
}

// close allows calls from now on. The caller holds mu.
func (b *Breaker) close(now time.Duration) {
	b.state, b.closedAt, b.failures = Closed, now, 0
	b.gate.Store(calm)
}

// later gives t + d, or the largest Duration on overflow.
func later(t, d time.Duration) time.Duration {
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}
