package loglimit

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/wallclock"
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
		if _, log := l.Event(wallclock.Set(start.Add(Every-1), change)); log {
			t.Errorf("the clock was set by %v: a line is admitted before %v", change, Every)
		}
		if _, log := l.Event(wallclock.Set(start.Add(Every), change)); !log {
			t.Errorf("the clock was set by %v: no line is admitted after %v", change, Every)
		}
	}
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
