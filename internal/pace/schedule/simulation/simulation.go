// Package simulation runs the pacing of one instance in virtual time. Simulated callers get
// the permits of package schedule, as in a pacer. The package is used to tune controllers and
// to draw docs/plots. Results depend only on the arguments.
package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate/internal/pace/schedule"
)

// Setup has the parameters of a simulation.
type Setup struct {
	Plan    schedule.Plan
	Windows int // number of windows, from window 0
	Demand  Demand
	// Patience is how long each caller waits. 0 means forever.
	Patience time.Duration
	// Spread takes the outcome of a window, and returns the fraction of the next window in
	// which permits open. For the first window, the outcome is zero. If Spread is nil, all
	// permits open at the start of a window.
	Spread func(schedule.Outcome) float64
	// Late is the maximum delay of the timer that wakes waiters. Each delay is random.
	Late time.Duration
	Seed uint64 // seed of all random numbers
}

// Demand returns the times at which callers arrive in a window of length per, in order. Times
// are counted from the window's start.
type Demand func(r *rand.Rand, window int, per time.Duration) []time.Duration

// Window is the result of a window.
type Window struct {
	schedule.Outcome

	Spread float64         // fraction of the window in which permits opened
	Given  []time.Duration // time of each permit since the window's start
	Waits  []time.Duration // waiting time of each permit's caller
}

// These values are the same as in package pace.
const (
	wakeEvery  = 500 * time.Microsecond // minimum time between two rounds of waking waiters
	credit     = 10 * time.Millisecond  // unused permits of this time stay open
	maxWaiters = 100_000
)

const never = time.Duration(1<<63 - 1)

// run is a running simulation. Times are counted from the start of window 0.
type run struct {
	Setup

	timer *rand.Rand
	queue []time.Duration // arrival times of the waiters
	wake  time.Duration   // next time at which the timer fires
	woken time.Duration   // last time at which the timer fired

	// The state of the current window:
	begin  time.Duration
	line   schedule.Line
	window Window
}

// Run runs the simulation, and returns the results of all windows.
func (s Setup) Run() []Window {
	r := run{Setup: s, timer: rand.New(rand.NewPCG(s.Seed, 0)), wake: never}
	windows := make([]Window, s.Windows)
	for i := range windows {
		r.next(i)
		r.pass(r.Demand(rand.New(rand.NewPCG(s.Seed, uint64(i)+1)), i, r.Plan.Per))
		r.settle()
		windows[i] = r.window
	}
	return windows
}

// next begins window i.
func (r *run) next(i int) {
	part := r.Plan.Part(int64(i))
	last := r.window.Outcome
	r.begin = time.Duration(i) * r.Plan.Per
	r.window = Window{Outcome: schedule.Outcome{Part: part}}
	r.line = schedule.Line{Part: part}
	if r.Spread != nil {
		r.window.Spread = r.Spread(last)
		r.line.Length = max(int64(float64(r.Plan.Per)*r.window.Spread), 1)
		r.line.Credit = int64(float64(part) * float64(credit) / float64(r.line.Length))
		r.line.Phase = r.line.Length / max(part, 1) / int64(r.Plan.Instances) * int64(r.Plan.Index)
	}
	if r.wake == never {
		r.arm(r.begin)
	}
}

// pass simulates a window in which callers arrive at the given times.
func (r *run) pass(arrivals []time.Duration) {
	for {
		switch {
		case len(arrivals) > 0 && r.begin+arrivals[0] <= r.wake:
			r.come(r.begin + arrivals[0])
			arrivals = arrivals[1:]
		case r.wake < r.begin+r.Plan.Per:
			r.serve(r.wake)
		default:
			return
		}
	}
}

// settle records at the end of a window how long the unmet demand lasted.
func (r *run) settle() {
	r.expire(r.begin + r.Plan.Per)
	if len(r.queue) > 0 {
		r.window.Until = 1
	}
}

// expire removes the waiters that have waited for Patience.
func (r *run) expire(now time.Duration) {
	for len(r.queue) > 0 && r.leaves(r.queue[0]) <= now {
		r.until(r.leaves(r.queue[0]))
		r.queue = r.queue[1:]
	}
}

// leaves returns the time at which a caller that arrived at since stops waiting.
func (r *run) leaves(since time.Duration) time.Duration {
	if r.Patience == 0 {
		return never
	}
	return since + r.Patience
}

// until records unmet demand that lasts until at.
func (r *run) until(at time.Duration) {
	r.window.Until = max(r.window.Until, min(float64(at-r.begin)/float64(r.Plan.Per), 1))
}

// come serves or queues a caller that arrives at now.
func (r *run) come(now time.Duration) {
	if len(r.queue) == 0 {
		elapsed := int64(now - r.begin)
		r.line.Idle(elapsed, r.window.Used)
		if r.line.Open(elapsed) > r.window.Used {
			r.give(now, now)
			return
		}
	}
	r.want(now)
	if len(r.queue) == maxWaiters {
		r.until(r.leaves(now))
		return
	}
	r.queue = append(r.queue, now)
	r.arm(now)
}

// serve gives open permits to waiters. It runs when the timer fires.
func (r *run) serve(now time.Duration) {
	r.woken, r.wake = now, never
	r.expire(now)
	for len(r.queue) > 0 && r.line.Open(int64(now-r.begin)) > r.window.Used {
		r.give(now, r.queue[0])
		r.queue = r.queue[1:]
	}
	if len(r.queue) > 0 {
		r.want(now)
		r.arm(now)
	}
}

// give gives a permit to a caller that arrived at since.
func (r *run) give(now, since time.Duration) {
	w := &r.window
	w.Used++
	w.Given = append(w.Given, now-r.begin)
	w.Waits = append(w.Waits, now-since)
}

// want records the first demand after the whole part was used.
func (r *run) want(now time.Duration) {
	if w := &r.window; w.Used >= w.Part && !w.Wanted {
		w.Wanted = true
		w.Lasted = float64(now-r.begin) / float64(r.Plan.Per)
	}
}

// arm sets the timer if there are waiters and the timer is not set.
func (r *run) arm(now time.Duration) {
	if r.wake != never || len(r.queue) == 0 {
		return
	}
	next := r.begin + r.Plan.Per
	if r.window.Used < r.window.Part {
		next = min(next, r.begin+time.Duration(r.line.When(r.window.Used+1)))
	}
	r.wake = max(next, now, r.woken+wakeEvery)
	if r.Late > 0 {
		r.wake += time.Duration(r.timer.Int64N(int64(r.Late)))
	}
}
