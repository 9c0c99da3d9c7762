// Package sim is virtual time: a clock that moves from one event to the next. Equal events give equal runs.
//
// The package reads no clock and starts no goroutine.
package sim

import (
	"math"
	"time"

	"github.com/headgate/headgate"
)

// Time is a virtual clock with the functions that are due. One goroutine uses a Time.
type Time struct {
	start, now headgate.Instant
	due        Queue[event]
	number     int
}

// event is a function at a time. Events of one time happen in the order of their numbers.
type event struct {
	at     headgate.Instant
	number int
	f      func()
	alarm  *Alarm // nil for a function of At
	turn   int    // of the alarm
}

// NewTime returns a clock that stands at start.
func NewTime(start headgate.Instant) *Time {
	return &Time{start: start, now: start, due: Queue[event]{Before: func(a, b event) bool {
		return a.at < b.at || a.at == b.at && a.number < b.number
	}}}
}

// Now returns the time.
func (t *Time) Now() headgate.Instant { return t.now }

// Since returns the time since the start.
func (t *Time) Since() time.Duration { return t.now.Sub(t.start) }

// At has Run call f at a time. A time that has passed counts as now.
func (t *Time) At(at headgate.Instant, f func()) { t.plan(event{at: at, f: f}) }

func (t *Time) plan(e event) {
	t.number++
	e.at, e.number = max(e.at, t.now), t.number
	t.due.Push(e)
}

// RunTo calls the functions that are due until a time, with those that they add until then, and sets the clock to it. A time that
// has passed changes nothing.
func (t *Time) RunTo(at headgate.Instant) {
	t.Run(func() bool { return t.due.First().at <= at })
	t.now = max(t.now, at)
}

// Run calls all functions in the order of their times, with those that they add, and stops the clock at the last one. It ends
// sooner when goOn reports false before an event.
func (t *Time) Run(goOn func() bool) {
	for t.due.Len() > 0 && goOn() {
		e := t.due.Pop()
		if a := e.alarm; a != nil {
			if !a.set || a.turn != e.turn {
				continue
			}
			a.set = false
		}
		t.now = e.at
		e.f()
	}
}

// Alarm calls its function once, as *time.Timer does, in virtual time.
type Alarm struct {
	time *Time
	ring func()
	set  bool
	turn int // counts Reset and Stop: events of earlier turns do nothing
}

// Alarm returns an alarm that is not set.
func (t *Time) Alarm(ring func()) *Alarm { return &Alarm{time: t, ring: ring} }

// Reset sets the alarm to go off in d, in place of any time set before. It reports whether the alarm was set.
func (a *Alarm) Reset(d time.Duration) bool {
	was := a.Stop()
	if d < 0 {
		d = 0
	}
	if at := a.time.now; d < time.Duration(math.MaxInt64-int64(at)) {
		a.set = true
		a.time.plan(event{at: at.Add(d), f: a.ring, alarm: a, turn: a.turn})
	}
	return was
}

// Stop lets a set alarm not go off. It reports whether the alarm was set.
func (a *Alarm) Stop() bool {
	was := a.set
	a.set = false
	a.turn++
	return was
}
