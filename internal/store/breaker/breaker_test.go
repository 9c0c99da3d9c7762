package breaker_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/store/breaker"
)

// TestStories has one event on each line: its time in ms, the call, and the expected result.
func TestStories(t *testing.T) {
	type line struct {
		at    int
		event string
		// began is the time at which the call of a result began.
		began   int
		allowed bool
		state   breaker.State
		changed bool
	}
	c := breaker.Config{Failures: 3, Probe: 100 * time.Millisecond, MaxProbe: 300 * time.Millisecond, Lease: 200 * time.Millisecond}
	open, half := breaker.Open, breaker.HalfOpen
	opening := []line{
		{at: 0, event: "fail"},
		{at: 1, event: "fail"},
		{at: 2, event: "fail", state: open, changed: true},
	}
	for name, story := range map[string][]line{
		"a success ends the row": {
			{at: 0, event: "fail"},
			{at: 1, event: "fail"},
			{at: 2, event: "ok", began: 2},
			{at: 3, event: "fail", began: 3},
			{at: 4, event: "fail", began: 4},
			{at: 5, event: "allow", allowed: true},
			{at: 6, event: "fail", began: 6, state: open, changed: true},
			{at: 7, event: "allow", state: open},
		},
		"one probe at a time, and it closes": append(opening[:3:3], []line{
			{at: 101, event: "allow", state: open},
			{at: 102, event: "allow", allowed: true, state: half},
			{at: 102, event: "allow", state: half},
			{at: 105, event: "ok", began: 102, changed: true},
			{at: 105, event: "allow", allowed: true},
			{at: 106, event: "ok", began: 105},
		}...),
		"waits double to a bound": append(opening[:3:3], []line{
			{at: 102, event: "allow", allowed: true, state: half},
			{at: 110, event: "fail", began: 102, state: open},
			{at: 309, event: "allow", state: open},
			{at: 310, event: "allow", allowed: true, state: half},
			{at: 310, event: "fail", began: 310, state: open},
			{at: 609, event: "allow", state: open},
			{at: 610, event: "allow", allowed: true, state: half},
			{at: 610, event: "fail", began: 610, state: open},
			{at: 910, event: "allow", allowed: true, state: half},
		}...),
		"a probe that never reports": append(opening[:3:3], []line{
			{at: 102, event: "allow", allowed: true, state: half},
			{at: 301, event: "allow", state: half},
			{at: 302, event: "allow", allowed: true, state: half},
			{at: 303, event: "fail", began: 102, state: half},
			{at: 304, event: "fail", began: 302, state: open},
			{at: 604, event: "allow", allowed: true, state: half},
			{at: 605, event: "ok", began: 302, changed: true},
		}...),
		"late results of before the opening": append(opening[:3:3], []line{
			{at: 3, event: "ok", began: 2, state: open},
			{at: 4, event: "fail", began: 1, state: open},
			{at: 102, event: "allow", allowed: true, state: half},
			{at: 103, event: "ok", began: 0, state: half},
			{at: 103, event: "fail", began: 0, state: half},
			{at: 104, event: "ok", began: 102, changed: true},
		}...),
		"late timeouts of the outage do not open it again": append(opening[:3:3], []line{
			{at: 102, event: "allow", allowed: true, state: half},
			{at: 104, event: "ok", began: 102, changed: true},
			{at: 105, event: "fail", began: 1},
			{at: 106, event: "fail", began: 2},
			{at: 107, event: "fail", began: 103},
			{at: 108, event: "fail", began: 104},
			{at: 109, event: "fail", began: 108},
			{at: 110, event: "ok", began: 2},
			{at: 111, event: "fail", began: 109, state: open, changed: true},
		}...),
		"a call that crossed with the opening": append(opening[:3:3], []line{
			{at: 5, event: "fail", began: 3, state: open},
			{at: 6, event: "ok", began: 3, changed: true},
		}...),
		"the caller of a probe gives up": append(opening[:3:3], []line{
			{at: 102, event: "allow", allowed: true, state: half},
			{at: 103, event: "unknown", began: 50, state: half},
			{at: 103, event: "unknown", began: 102, state: open},
			{at: 103, event: "allow", allowed: true, state: half},
			{at: 103, event: "allow", state: half},
			{at: 104, event: "fail", began: 103, state: open},
			{at: 303, event: "allow", state: open},
			{at: 304, event: "allow", allowed: true, state: half},
		}...),
	} {
		t.Run(name, func(t *testing.T) {
			b := breaker.New(c)
			for i, l := range story {
				at, began := time.Duration(l.at)*time.Millisecond, time.Duration(l.began)*time.Millisecond
				allowed, changed := false, false
				switch l.event {
				case "allow":
					allowed = b.Allow(at)
				case "ok", "fail":
					var state breaker.State
					if state, changed = b.Done(began, at, l.event == "ok"); state != b.State() {
						t.Errorf("line %d: Done says %v, State %v", i, state, b.State())
					}
				case "unknown":
					b.Unknown(began)
				}
				if allowed != l.allowed || changed != l.changed || b.State() != l.state {
					t.Fatalf("line %d %+v: allowed %v, changed %v, %v", i, l, allowed, changed, b.State())
				}
			}
		})
	}
}

// TestCounters: State, OpenedAt and Stats agree with the calls made.
func TestCounters(t *testing.T) {
	b := breaker.New(breaker.Config{Failures: 1})
	if _, open := b.OpenedAt(); open {
		t.Error("new, and open")
	}
	b.Failed(3, 7)
	for now := range time.Duration(10) {
		b.Allow(10 + now)
	}
	at, open := b.OpenedAt()
	if got := b.Stats(); at != 7 || !open || got != (breaker.Stats{Opened: 1, Refused: 10}) {
		t.Errorf("opened at %v (%v), %+v", at, open, got)
	}
	if got := breaker.HalfOpen.String() + " " + breaker.State(9).String(); got != "half_open state(9)" {
		t.Error(got)
	}
}

// TestJitter: a wait is shortened by up to its half. Jitter outside [0, 1) is harmless.
func TestJitter(t *testing.T) {
	for _, c := range []struct {
		number float64
		wait   time.Duration
	}{{0, 100}, {0.5, 75}, {1, 50}, {17, 50}, {-1, 100}} {
		b := breaker.New(breaker.Config{Failures: 1, Probe: 100, Jitter: func() float64 { return c.number }})
		b.Failed(0, 0)
		if b.Allow(c.wait-1) || !b.Allow(c.wait) {
			t.Errorf("%v: the first probe is not at %d", c.number, c.wait)
		}
	}
}

// TestOneProbeAndOneReport: many goroutines call Allow. One of them probes in each interval,
// and each change of state is reported once.
func TestOneProbeAndOneReport(t *testing.T) {
	b := breaker.New(breaker.Config{Failures: 3, Probe: 10, MaxProbe: 10})
	var opened, closed atomic.Int64
	for round := range time.Duration(200) {
		now := round * 1000
		var probes atomic.Int64
		together(8, func(int) { tell(&opened, &closed)(b.Failed(now, now+1)) })
		together(8, func(int) {
			if b.Allow(now + 500) {
				probes.Add(1)
				tell(&opened, &closed)(b.Succeeded(now+500, now+600))
			}
		})
		// After the probe's success, the other goroutines may call too.
		if probes.Load() < 1 || b.State() != breaker.Closed {
			t.Fatalf("round %d: %d probes, %v", round, probes.Load(), b.State())
		}
		together(8, func(int) { b.Failed(now+550, now+700) })
	}
	if opened.Load() != 200 || closed.Load() != 200 {
		t.Errorf("told of %d openings and %d closings of 200", opened.Load(), closed.Load())
	}
	b = breaker.New(breaker.Config{Failures: 1, Probe: 10})
	b.Failed(0, 0)
	var probes atomic.Int64
	together(8, func(int) {
		if b.Allow(10) {
			probes.Add(1)
		}
	})
	if probes.Load() != 1 {
		t.Errorf("%d probes at once", probes.Load())
	}
}

// tell counts the reported changes of state.
func tell(opened, closed *atomic.Int64) func(breaker.State, bool) {
	return func(s breaker.State, changed bool) {
		switch {
		case changed && s == breaker.Open:
			opened.Add(1)
		case changed && s == breaker.Closed:
			closed.Add(1)
		}
	}
}

func together(n int, run func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { run(i) })
	}
	all.Wait()
}

// TestNothingAllocates: a closed and an open Breaker allocate nothing.
func TestNothingAllocates(t *testing.T) {
	b := breaker.New(breaker.Config{})
	now := time.Duration(0)
	for _, ok := range []bool{true, false} {
		n := testing.AllocsPerRun(1000, func() {
			now++
			if b.Allow(now) {
				b.Done(now, now+1, ok)
			}
		})
		if n != 0 {
			t.Errorf("with ok %v a call allocates %v times", ok, n)
		}
	}
}

func BenchmarkClosed(b *testing.B) {
	br := breaker.New(breaker.Config{})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if br.Allow(1) {
				br.Succeeded(1, 2)
			}
		}
	})
}
