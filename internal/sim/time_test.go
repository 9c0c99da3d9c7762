package sim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/sim"
)

// TestTime tells the life of a clock: functions run in the order of their times, and those of one time in the order of At.
func TestTime(t *testing.T) {
	t.Parallel()
	const start = headgate.Instant(1000)
	clock := sim.NewTime(start)
	var seen []string
	note := func(text string) func() {
		return func() { seen = append(seen, clock.Since().String()+" "+text) }
	}
	clock.At(start+20, note("late"))
	clock.At(start+10, func() {
		note("early")()
		clock.At(start, note("a time that has passed"))
		clock.At(start+20, note("later still"))
	})
	moved := clock.Alarm(note("an alarm that was moved"))
	stopped := clock.Alarm(note("an alarm that was stopped"))
	moved.Reset(5)
	stopped.Reset(5)
	if !moved.Reset(30) || !stopped.Stop() || stopped.Stop() {
		t.Error("Reset and Stop do not say whether the alarm was set")
	}
	never := clock.Alarm(note("an alarm beyond the end of time"))
	never.Reset(math.MaxInt64)
	left := 6 // Two of them are those of alarms that were moved and stopped.
	clock.Run(func() bool { left--; return left >= 0 })
	clock.At(0, note("behind the end"))
	want := []string{"10ns early", "10ns a time that has passed", "20ns late", "20ns later still"}
	if !slices.Equal(seen, want) {
		t.Errorf("ran %q, want %q", seen, want)
	}
	clock.Run(func() bool { return true })
	if want = append(want, "20ns behind the end", "30ns an alarm that was moved"); !slices.Equal(seen, want) || clock.Now() != start+30 {
		t.Errorf("ran %q at %d, want %q", seen, clock.Now(), want)
	}
	if moved.Reset(time.Second) {
		t.Error("an alarm that went off says that it is set")
	}
}

// TestRunTo: the clock stops at a time between two events, and at the time of an event after it.
func TestRunTo(t *testing.T) {
	t.Parallel()
	clock := sim.NewTime(100)
	ran := 0
	for _, at := range []headgate.Instant{110, 120, 120, 130} {
		clock.At(at, func() { ran++ })
	}
	for _, step := range []struct {
		to, now headgate.Instant
		ran     int
	}{{105, 105, 0}, {120, 120, 3}, {50, 120, 3}, {129, 129, 3}, {500, 500, 4}} {
		if clock.RunTo(step.to); clock.Now() != step.now || ran != step.ran {
			t.Errorf("to %d: the clock stands at %d, and %d functions ran, want %d and %d", step.to, clock.Now(), ran, step.now, step.ran)
		}
	}
}

// TestQueue compares the queue with a sorted list.
func TestQueue(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		q := sim.Queue[int]{Before: func(a, b int) bool { return a < b }}
		var sorted []int
		for range 200 {
			if x := random.IntN(50); random.IntN(3) > 0 || q.Len() == 0 {
				q.Push(x)
				sorted = append(sorted, x)
				slices.Sort(sorted)
			} else if first := q.First(); first != sorted[0] || q.Pop() != first {
				t.Fatalf("the queue gives %d, want %d", first, sorted[0])
			} else {
				sorted = sorted[1:]
			}
			if q.Len() != len(sorted) {
				t.Fatalf("the queue has %d elements, want %d", q.Len(), len(sorted))
			}
		}
	}
}
