// Package loglimit bounds the log lines about an event that a client or a failing peer can repeat.
package loglimit

import (
	"sync/atomic"
	"time"
)

// Every is the least time between two lines of a Limiter.
const Every = 10 * time.Second

// Limiter counts events of one kind, and admits one log line per Every. The zero Limiter is ready for use and
// admits a line for the first event. A Limiter is safe for concurrent use.
type Limiter struct {
	events, logged atomic.Uint64 // logged is events at the last line
	last           atomic.Pointer[time.Time]
}

// Event counts an event at now, and reports whether to log a line. since is the number of events since the last
// line, including this event. now is a time of time.Now: Limiter compares its monotonic clock reading, because a
// wall clock that is set back would end the lines for as long.
func (l *Limiter) Event(now time.Time) (since uint64, log bool) {
	n := l.events.Add(1)
	last := l.last.Load()
	if last != nil && now.Sub(*last) < Every {
		return 0, false
	}
	at := now // A copy: otherwise each event would allocate now.
	if !l.last.CompareAndSwap(last, &at) {
		return 0, false
	}
	return n - l.logged.Swap(n), true
}

// Events returns the number of events.
func (l *Limiter) Events() uint64 { return l.events.Load() }
