package wheel

import "time"

// Clock is the time for Timers: that of the machine (Machine), or of a simulation. A Clock is
// safe for concurrent use.
type Clock interface {
	// Now gives the monotonic time since an origin that does not change.
	Now() time.Duration
	// Alarm makes an alarm that is not set, and calls ring each time it goes off.
	Alarm(ring func()) Alarm
}

// Alarm calls its function once, as *time.Timer does.
type Alarm interface {
	// Reset sets the alarm to go off in d, in place of any time set before.
	Reset(d time.Duration) bool
	// Stop lets a set alarm not go off.
	Stop() bool
}

// Machine gives the machine's monotonic clock, starting now. A Clock that is made in a
// testing/synctest bubble uses the bubble's clock, and must stay in the bubble.
func Machine() Clock { return machine{time.Now()} }

type machine struct{ origin time.Time }

// Now implements Clock.
func (m machine) Now() time.Duration { return time.Since(m.origin) }

// Alarm implements Clock. The runtime holds the alarm, and starts a goroutine when it
// goes off: none waits for it.
func (machine) Alarm(ring func()) Alarm {
	t := time.AfterFunc(never, ring)
	t.Stop()
	return t
}

// Convert gives the time of clock to when the time of clock from is now. Of the machine's clocks, none is read.
func Convert(to, from Clock, now time.Duration) time.Duration {
	t, ours := to.(machine)
	f, known := from.(machine)
	if ours && known {
		return now + f.origin.Sub(t.origin)
	}
	return to.Now()
}

// now gives the time.
func (t *Timers) now() time.Duration { return t.clock.Now() }

// setAlarm makes ring run in d, instead of at any time set before; mu is held.
func (t *Timers) setAlarm(d time.Duration) {
	if t.alarm == nil {
		t.alarm = t.clock.Alarm(t.ring)
	}
	t.alarm.Reset(d)
}

// NewTimers makes a Timers with a clock. A nil clock is the machine's. Timers needs no Close:
// without waiting entries it has no goroutine and no alarm, and the garbage collector can free
// it.
func NewTimers(c Clock) *Timers {
	if c == nil {
		c = Machine()
	}
	return &Timers{clock: c, armed: never}
}
