package tally

import (
	"time"

	"github.com/headgate/headgate"
)

// maxSteps bounds the steps of a Timeline: what a picture of a usual width shows.
const maxSteps = 240

// Timeline counts requests over time in at most 240 steps. The steps grow with the time.
type Timeline struct {
	step  time.Duration
	start headgate.Instant
	steps []Step
}

// Step has the counts of a part of the time.
type Step struct{ Requests, Refused int64 }

// Add counts a request. Times are not before those of earlier calls.
func (l *Timeline) Add(at headgate.Instant, refused bool) {
	if l.steps == nil {
		l.step, l.start = time.Second, at/headgate.Instant(time.Second)*headgate.Instant(time.Second)
		l.steps = make([]Step, 0, maxSteps)
	}
	n := max(0, int(at.Sub(l.start)/l.step))
	for n >= maxSteps {
		l.widen()
		n = int(at.Sub(l.start) / l.step)
	}
	for len(l.steps) <= n {
		l.steps = append(l.steps, Step{})
	}
	l.steps[n].Requests++
	if refused {
		l.steps[n].Refused++
	}
}

// widthsTable are the lengths of steps: each is a multiple of the one before. Beyond them, steps double.
var widthsTable = [...]time.Duration{
	time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// widen makes the steps longer. They then begin at a multiple of their length.
func (l *Timeline) widen() {
	step := 2 * l.step
	for _, w := range widthsTable {
		if w > l.step {
			step = w
			break
		}
	}
	start := headgate.Instant(time.Duration(l.start).Truncate(step))
	wider := make([]Step, 0, maxSteps)
	for i, s := range l.steps {
		n := int(l.start.Add(time.Duration(i)*l.step).Sub(start) / step)
		for len(wider) <= n {
			wider = append(wider, Step{})
		}
		wider[n].Requests += s.Requests
		wider[n].Refused += s.Refused
	}
	l.step, l.start, l.steps = step, start, wider
}

// Steps returns the counts, the time of the first step, and the length of a step.
func (l *Timeline) Steps() (steps []Step, start headgate.Instant, step time.Duration) {
	return l.steps, l.start, l.step
}
