// Package simulation runs the pacing of one instance in virtual time: a demand comes,
// and the permits of package schedule go to it, as they do in a pacer. Controllers are
// tuned on it, and docs/plots is drawn from it. What it gives depends on its arguments alone.
package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate/pace/schedule"
)

// Setup is what is simulated.
type Setup struct {
	Plan    schedule.Plan
	Windows int // from window 0 on
	Demand  Demand
	// Patience is how long each caller waits; for ever when it is 0.
	Patience time.Duration
	// Spread gives from what a window was like the part of the next in which its permits
	// open, from 0 to 1; it is asked for the first too. All are open from the start when it is nil.
	Spread func(schedule.Outcome) float64
	// Late is by how much the timer that wakes waiters may be late: by any time up to it,
	// anew each time.
	Late time.Duration
	Seed uint64 // of all that is random
}

// Demand gives the times at which callers come in a window, since its begin and in
// order, when the window is so long.
type Demand func(r *rand.Rand, window int, per time.Duration) []time.Duration

// Window is what has become of a window.
type Window struct {
	schedule.Outcome

	Spread float64         // the part of it over which its permits opened
	Given  []time.Duration // when each permit was given, since the window's begin
	Waits  []time.Duration // and how long its caller waited
}

// As in package pace: how often waiters are looked at, at most, how much of what nobody
// wanted stays open, and how many may wait.
const (
	wakeEvery  = 500 * time.Microsecond
	credit     = 10 * time.Millisecond
	maxWaiters = 100_000
)

const never = time.Duration(1<<63 - 1)

// run is a simulation. Times are since window 0 began.
type run struct {
	Setup

	timer *rand.Rand
	queue []time.Duration // when those who wait have come
	wake  time.Duration   // when the timer fires
	woken time.Duration   // when it last did

	// Of the window that it is in:
	begin  time.Duration
	line   schedule.Line
	window Window
}

// Run simulates, and gives what became of each window.
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

// pass lets a window's time pass, in which callers come at such times.
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

// settle says at a window's end how long more was wanted in it.
func (r *run) settle() {
	r.expire(r.begin + r.Plan.Per)
	if len(r.queue) > 0 {
		r.window.Until = 1
	}
}

// expire lets those go who have waited for as long as they would.
func (r *run) expire(now time.Duration) {
	for len(r.queue) > 0 && r.leaves(r.queue[0]) <= now {
		r.until(r.leaves(r.queue[0]))
		r.queue = r.queue[1:]
	}
}

// leaves gives when a caller goes who has come at since.
func (r *run) leaves(since time.Duration) time.Duration {
	if r.Patience == 0 {
		return never
	}
	return since + r.Patience
}

// until notes that somebody wanted more until then.
func (r *run) until(at time.Duration) {
	r.window.Until = max(r.window.Until, min(float64(at-r.begin)/float64(r.Plan.Per), 1))
}

// come lets a caller come.
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

// serve gives to those who wait what is open, when the timer has fired.
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

// give gives a permit to who has come at since.
func (r *run) give(now, since time.Duration) {
	w := &r.window
	w.Used++
	w.Given = append(w.Given, now-r.begin)
	w.Waits = append(w.Waits, now-since)
}

// want notes when more is wanted than the part.
func (r *run) want(now time.Duration) {
	if w := &r.window; w.Used >= w.Part && !w.Wanted {
		w.Wanted = true
		w.Lasted = float64(now-r.begin) / float64(r.Plan.Per)
	}
}

// arm sets the timer for those who wait, unless it is set.
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
