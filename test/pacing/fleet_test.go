package pacing

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/schedule"
)

// instances is how many the fleets have: as many as those of the campaign that was 300,000
// requests a second.
const instances = 96

// fleet is the pacers of one provider, whose windows are of a second.
type fleet struct {
	order

	members []*instance
	// The seconds whose use is judged.
	first, seconds int64
}

// instance is one pacer, and what it has given.
type instance struct {
	*pace.Pacer

	ahead time.Duration // how far its clock is
	set   bool          // Its clock is set: what counts is when somebody is told.
	keep  bool          // times, too

	mu      sync.Mutex
	windows map[int64]int64 // units by the windows of its own clock
	times   []headgate.Instant
	failed  error
}

// order says what a fleet is like.
type order struct {
	limit     int64
	instances int
	smoothing pace.Smoothing
	keep      bool                             // when each unit was given
	ahead     func(instance int) time.Duration // how far clocks are; nil: not at all
	wall      func() headgate.Instant          // a clock that is set meanwhile; nil: none
	late      time.Duration                    // how late the machine may wake somebody
}

// start makes a fleet. Its instances have their plans when it returns.
func start(t *testing.T, o order) *fleet {
	t.Helper()
	f := &fleet{order: o}
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

// close ends the pacers, after which nothing is given any more.
func (f *fleet) close() {
	for _, in := range f.members {
		in.Close()
	}
}

// saturate lets so many wait on each instance that there are always some, whatever
// a window gives, and each who has been served comes back at once. What is open already
// is taken at once, by calls within calls, as many as a window has units.
func (f *fleet) saturate() {
	waiters := min(f.limit/int64(len(f.members)), 1024) + 2
	for _, in := range f.members {
		again := in.again()
		for range waiters {
			in.AcquireFunc(1, pace.Forever, again)
		}
	}
}

// again gives a callback that writes down what it was given and asks for the next.
func (in *instance) again() (f func(headgate.Instant, error)) {
	f = func(at headgate.Instant, err error) {
		if in.note(at, err) {
			in.AcquireFunc(1, pace.Forever, f)
		}
	}
	return f
}

// note writes down what somebody was told, and says whether it was a unit.
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

// settle is how long after a second the pacers have told all who were served in it.
const settle = 150 * time.Millisecond

// run lets whole seconds pass, of which the first begins with the next second, so that all
// instances have begun, and ends the fleets a little after the last.
func run(t *testing.T, seconds int64, fleets ...*fleet) {
	t.Helper()
	first := time.Now().Unix() + 1
	sleepUntil(time.Unix(first+seconds, int64(settle)))
	for _, f := range fleets {
		f.first, f.seconds = first, seconds
		f.end(t)
	}
}

// runUntilUsed is run in real time, on a machine that may be busy with something else, and a
// second late: it goes on until each fleet has used so much of its limit in as many
// seconds in a row, or for five times as long.
func runUntilUsed(t *testing.T, seconds int64, fleets ...*fleet) {
	t.Helper()
	first := time.Now().Unix() + 1
	behind := slices.Clone(fleets)
	for last := first + seconds; len(behind) > 0 && last <= first+5*seconds; last++ {
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

// end ends a fleet, and reports what it was told wrongly.
func (f *fleet) end(t *testing.T) {
	t.Helper()
	f.close()
	for i, in := range f.members {
		if in.failed != nil {
			t.Errorf("limit %d, instance %d: %v", f.limit, i, in.failed)
		}
	}
}

// used gives how much of the limit of the seconds that are judged was used.
func (f *fleet) used() float64 {
	sums, all := f.sums(), int64(0)
	for w := range f.seconds {
		all += sums[f.first+w]
	}
	return float64(all) / float64(f.limit*f.seconds)
}

// judge holds that never was more than the limit given in a second, and that so much of it was
// used in those that are judged.
func (f *fleet) judge(t *testing.T, least float64) {
	t.Helper()
	for w, sum := range f.sums() {
		if sum > f.limit {
			t.Errorf("limit %d, second %d: %d were given", f.limit, w, sum)
		}
	}
	t.Logf("limit %d, %v: %.3f %% used", f.limit, f.smoothing, 100*f.used())
	if f.used() < least {
		t.Errorf("limit %d, %v: %.3f %% were used, want %.1f %%", f.limit, f.smoothing, 100*f.used(), 100*least)
	}
}

// sleepUntil passes time: that of a bubble, or the machine's, which is what is measured.
func sleepUntil(when time.Time) {
	time.Sleep(time.Until(when)) //nolint:forbidigo // as above
}
