package wheel

import (
	"math"
	"sync"
	"time"
)

// Timers fires entries by a clock, with one alarm for all of them. NewTimers makes a Timers,
// which is safe for concurrent use.
type Timers struct {
	clock Clock

	// mu guards the fields below. It is held to add or remove one entry, or while a batch of entries
	// moves, never during a Fire.
	mu    sync.Mutex
	wheel Wheel
	alarm Alarm // nil before the first entry
	// armed is when the alarm rings; it is never later than wheel.Next unless
	// firing. An entry that is stopped leaves it as it is: it rings for nothing
	// once, which costs less than setting it at every Stop.
	armed time.Duration
	// firing means that a goroutine is firing due entries. That goroutine sets the alarm when it has
	// finished; until then no other goroutine sets the alarm.
	firing bool
}

// never is the end of all time, 292 years after the origin.
const never time.Duration = math.MaxInt64

// Start lets e wait for d, and then calls e.Fire once, in a goroutine that all
// entries share: after d at the earliest, and at the next whole tick. With d of 0
// or less that is at once. An entry that waits already waits for the new time
// instead.
func (t *Timers) Start(e *Entry, d time.Duration) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wheel.skip(tickAt(now))
	t.wheel.Add(e, departure(now, d))
	if !t.firing {
		t.arm(now)
	}
}

// departure gives the time d after now. Without a wait it is the tick that has
// begun, so that it is not rounded up to the next one. The end of time is as late
// as it gets.
func departure(now, d time.Duration) time.Duration {
	switch {
	case d <= 0:
		return now - now%Tick
	case d > never-now:
		return never
	default:
		return now + d
	}
}

// Stop ends the wait of e. It reports false when e does not wait: its Fire was called or is
// about to be called, or e was stopped or never started. Stop does not wait for a running Fire.
func (t *Timers) Stop(e *Entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.wheel.Remove(e) {
		return false
	}
	if t.wheel.Len() == 0 {
		t.alarm.Stop()
		t.armed = never
	}
	return true
}

// Len gives the number of entries that wait.
func (t *Timers) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wheel.Len()
}

// arm sets the alarm for the next work of the wheel, unless it rings before; mu is
// held.
func (t *Timers) arm(now time.Duration) {
	next, ok := t.wheel.Next()
	if !ok || next >= t.armed {
		return
	}
	t.armed = next
	t.setAlarm(next - now)
}

// ring runs when the alarm does, and fires all that is due.
func (t *Timers) ring() {
	if !t.begin() {
		return
	}
	defer t.rest() // After a Fire that ends its goroutine, too.
	now := tickAt(t.now())
	for fire, more := t.take(now); more; fire, more = t.take(now) {
		if fire == nil {
			now = tickAt(t.now()) // Entries that have become due go before further batches.
			continue
		}
		fire()
	}
}

// begin reports false when another goroutine is already firing, because a new alarm was set
// while the old one rang.
func (t *Timers) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	begun := !t.firing
	t.firing = true
	return begun
}

// take does the next piece of the wheel's work, and gives what is to be called
// after it. One entry is taken out at a time, so that a Fire can stop the next.
func (t *Timers) take(now int64) (fire func(), more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, more := t.wheel.step(now, batch)
	if e != nil {
		fire = e.Fire
	}
	return fire, more
}

// rest sets the alarm for what waits still.
func (t *Timers) rest() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.firing, t.armed = false, never
	t.arm(t.now())
}
