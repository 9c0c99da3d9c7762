package pacing

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/pace"
)

// instances is the number of instances in a fleet. docs/pacing.md uses the same number.
const instances = 96

// fleet has the pacers of one provider, with windows of a second.
type fleet struct {
	settings

	members []*instance
	// The first second and the number of seconds in which judge measures the used units.
	first, seconds int64
}

// instance is one pacer, with the units that it has given.
type instance struct {
	*pace.Pacer

	ahead time.Duration // error of its clock
	set   bool          // its clock is set during the test: record the time of the callback
	keep  bool          // also record times

	mu      sync.Mutex
	windows map[int64]int64 // units by window of its own clock
	times   []headgate.Instant
	failed  error
}

// settings describes a fleet.
type settings struct {
	limit     int64
	instances int
	smoothing pace.Smoothing
	keep      bool                             // record the time of each unit
	ahead     func(instance int) time.Duration // clock errors; nil means none
	wall      func() headgate.Instant          // a clock that is set during the test; nil means none
	late      time.Duration                    // maximum delay of the machine's timers
}

// start returns a fleet after all its instances have their plans.
func start(t *testing.T, o settings) *fleet {
	t.Helper()
	f := &fleet{settings: o}
	for i := range o.instances {
		plan, err := schedule.Even(o.limit, time.Second, o.instances, i)
		if err != nil {
			t.Fatal(err)
		}
		in := &instance{keep: o.keep, set: o.wall != nil, windows: map[int64]int64{}}
		c := pace.Config{
			Provider: "provider", Source: pace.Static(plan), Smoothing: o.smoothing,
			Logger: slog.New(slog.DiscardHandler), Wall: o.wall,
		}
		if o.ahead != nil {
			in.ahead = o.ahead(i)
			c.Wall = func() headgate.Instant { return headgate.Instant(time.Now().Add(in.ahead).UnixNano()) }
		}
		if in.Pacer, err = pace.New(c); err != nil {
			t.Fatal(err)
		}
		f.members = append(f.members, in)
	}
	t.Cleanup(f.close)
	for _, in := range f.members {
		if err := in.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// close closes the pacers. After that, no units are given.
func (f *fleet) close() {
	for _, in := range f.members {
		in.Close()
	}
}

// saturate adds so many waiters to each instance that some always wait. Each served waiter
// returns at once. Units that are already open are taken by nested calls, as many as a window
// has units.
func (f *fleet) saturate() {
	waiters := min(f.limit/int64(len(f.members)), 1024) + 2
	for _, in := range f.members {
		again := in.again()
		for range waiters {
			in.AcquireFunc(1, pace.Forever, again)
		}
	}
}

// again returns a callback that records its result and acquires the next unit.
func (in *instance) again() (f func(headgate.Instant, error)) {
	f = func(at headgate.Instant, err error) {
		if in.note(at, err) {
			in.AcquireFunc(1, pace.Forever, f)
		}
	}
	return f
}

// note records the result of a callback, and reports whether it was a unit.
func (in *instance) note(at headgate.Instant, err error) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case errors.Is(err, pace.ErrClosed):
		return false
	case err != nil:
		in.failed = err
		return false
	}
	in.windows[int64(at)/int64(time.Second)]++
	if in.set {
		at = headgate.Instant(time.Now().UnixNano())
	}
	if in.keep {
		in.times = append(in.times, at.Add(-in.ahead))
	}
	return true
}

// settle is the time after a second in which the pacers call all callbacks of that second.
const settle = 150 * time.Millisecond

// run waits for whole seconds, beginning with the next second, so that all instances have
// begun. Shortly after the last second, run ends the fleets.
func run(t *testing.T, seconds int64, fleets ...*fleet) {
	t.Helper()
	first := time.Now().Unix() + 1
	sleepUntil(time.Unix(first+seconds, int64(settle)))
	for _, f := range fleets {
		f.first, f.seconds = first, seconds
		f.end(t)
	}
}

// patience is the number of seconds that runUntilUsed waits for a busy machine to keep time.
const patience = 60

// runUntilUsed is run in real time, on a machine that may be busy and delay a fleet by a
// second. runUntilUsed waits until each fleet has used enough of its limit in this number of
// consecutive seconds. It gives up after patience.
func runUntilUsed(t *testing.T, seconds int64, fleets ...*fleet) {
	t.Helper()
	first := time.Now().Unix() + 1
	behind := slices.Clone(fleets)
	for last := first + seconds; len(behind) > 0 && last <= first+patience; last++ {
		sleepUntil(time.Unix(last, int64(settle)))
		behind = slices.DeleteFunc(behind, func(f *fleet) bool {
			f.first, f.seconds = last-seconds, seconds
			return f.used() >= leastInRealTime(f)
		})
	}
	for _, f := range fleets {
		f.end(t)
	}
}

// end closes a fleet, and reports the errors that callbacks received.
func (f *fleet) end(t *testing.T) {
	t.Helper()
	f.close()
	for i, in := range f.members {
		if in.failed != nil {
			t.Errorf("limit %d, instance %d: a callback received the error %v", f.limit, i, in.failed)
		}
	}
}

// used returns the used fraction of the limit in the judged seconds.
func (f *fleet) used() float64 {
	sums, all := f.sums(), int64(0)
	for w := range f.seconds {
		all += sums[f.first+w]
	}
	return float64(all) / float64(f.limit*f.seconds)
}

// judge checks that no second has more units than the limit. It also checks that at least this
// fraction of the limit was used in the judged seconds.
func (f *fleet) judge(t *testing.T, least float64) {
	t.Helper()
	for w, sum := range f.sums() {
		if sum > f.limit {
			t.Errorf("limit %d: %d units were given in second %d, want at most the limit", f.limit, sum, w)
		}
	}
	t.Logf("limit %d, %v: %.3f %% of the limit used", f.limit, f.smoothing, 100*f.used())
	if f.used() < least {
		t.Errorf("limit %d, %v: %.3f %% of the limit was used, want at least %.1f %%", f.limit, f.smoothing, 100*f.used(), 100*least)
	}
}

// sleepUntil sleeps in virtual time inside a synctest bubble, and in real time elsewhere.
func sleepUntil(when time.Time) {
	time.Sleep(time.Until(when)) //nolint:forbidigo // the tests measure time
}
