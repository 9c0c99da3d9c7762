package wheel

import "time"

// now gives the monotonic time since the Timers was made.
func (t *Timers) now() time.Duration {
	return time.Since(t.origin)
}

// setAlarm makes ring run in d, instead of at any time set before; mu is held. The
// runtime holds the alarm, and starts a goroutine when it rings: none waits for it.
func (t *Timers) setAlarm(d time.Duration) {
	if t.alarm == nil {
		t.alarm = time.AfterFunc(d, t.ring)
		return
	}
	t.alarm.Reset(d)
}

// NewTimers makes a Timers. It needs no end: while nothing waits in it, it holds
// no goroutine and no timer, and is collected like any value. One that is made in
// a testing/synctest bubble goes by the bubble's clock, and is used there alone.
func NewTimers() *Timers {
	return &Timers{
		origin: time.Now(),
		armed:  never,
	}
}
