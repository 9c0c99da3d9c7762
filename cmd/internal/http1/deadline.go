package http1

import "time"

// Deadline decides when the deadline of a connection must be set again. Setting a deadline
// costs more than the other work for a small message. Therefore a deadline that is set and
// slightly too early stays set. If it fires, the caller learns from Fired that the time
// is not over. The zero Deadline stands for a connection without a deadline.
//
// A Deadline only computes. The caller passes the times that it returns to the connection.
type Deadline struct{ armed time.Time }

// tolerance is the part of a timeout by which a deadline may be too early.
const tolerance = 16

// Arm returns set if the connection's deadline must be set to at, so that a call which
// starts now ends after timeout.
func (d *Deadline) Arm(now time.Time, timeout time.Duration) (set bool, at time.Time) {
	at = now.Add(timeout)
	if !d.armed.After(at) && d.armed.After(at.Add(-timeout/tolerance)) {
		return false, at
	}
	d.armed = at
	return true, at
}

// Fired is called when the connection's deadline fired. due is when the call times out, or
// the zero Time if it never does. Fired returns whether the call timed out. If not, the
// caller sets the connection's deadline to due and continues.
func (d *Deadline) Fired(now, due time.Time) (timedOut bool) {
	if !due.IsZero() && !now.Before(due) {
		return true
	}
	d.armed = due
	return false
}

// Clear returns whether the connection's deadline must be set to the zero Time, so that it
// never fires.
func (d *Deadline) Clear() (set bool) {
	set = !d.armed.IsZero()
	d.armed = time.Time{}
	return set
}
