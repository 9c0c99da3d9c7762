package loglimit

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// TestLines: a line admits the next one after Every, and names the events in between.
func TestLines(t *testing.T) {
	var l Limiter
	start := time.Now()
	for _, event := range []struct {
		at    time.Duration
		since uint64 // 0 is no line
	}{{0, 1}, {0, 0}, {Every - 1, 0}, {Every, 3}, {Every + 1, 0}, {time.Hour, 2}, {time.Hour - 1, 0}} {
		since, log := l.Event(start.Add(event.at))
		if log != (event.since > 0) || since != event.since {
			t.Errorf("after %v: got %d, %v, want %d", event.at, since, log, event.since)
		}
	}
	if got := l.Events(); got != 7 {
		t.Errorf("got %d events, want 7", got)
	}
}

// TestClockIsSet: a wall clock that is set changes nothing.
func TestClockIsSet(t *testing.T) {
	for _, change := range []time.Duration{-time.Hour, time.Hour} {
		var l Limiter
		start := time.Now()
		l.Event(start)
		if _, log := l.Event(wallSet(start.Add(Every-1), change)); log {
			t.Errorf("the clock was set by %v: a line is admitted before %v", change, Every)
		}
		if _, log := l.Event(wallSet(start.Add(Every), change)); !log {
			t.Errorf("the clock was set by %v: no line is admitted after %v", change, Every)
		}
	}
}

// wallSet returns a time as time.Now returns it after the wall clock was set by change, in whole seconds. Package
// time offers no such change: bit 63 of the first word marks a monotonic reading, and bits 30 to 62 are seconds.
func wallSet(t time.Time, change time.Duration) time.Time {
	words := (*struct{ wall, monotonic uint64 })(unsafe.Pointer(&t))
	if words.wall>>63 == 0 {
		panic("the time has no monotonic reading")
	}
	words.wall += uint64(int64(change/time.Second) << 30)
	return t
}

// TestConcurrentEvents: of simultaneous events, one has a line.
func TestConcurrentEvents(t *testing.T) {
	var l Limiter
	var lines, sum atomic.Uint64
	now := time.Now()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if since, log := l.Event(now); log {
					lines.Add(1)
					sum.Add(since)
				}
			}
		})
	}
	all.Wait()
	since, log := l.Event(now.Add(Every))
	if lines.Load() != 1 || !log || sum.Load()+since != 801 {
		t.Errorf("got %d lines and %d events in them, and then %d, %v", lines.Load(), sum.Load(), since, log)
	}
}
