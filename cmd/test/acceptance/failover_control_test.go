package acceptance

import (
	"testing"
	"time"
)

// controlPath matches no rule. Requests for it wait for the machine and not for the store, so that their times tell
// how late the machine made decisions of the same seconds.
const controlPath, controlRate = "/control", 100

// lateness has the longest time of a control request for each second in which one was in the proxy.
type lateness map[int64]time.Duration

// note adds a control request. Its line in the log has the time at one of its ends.
func (l lateness) note(at time.Time, elapsed time.Duration) {
	for second := at.Add(-elapsed).Unix(); second <= at.Add(elapsed).Unix(); second++ {
		l[second] = max(l[second], elapsed)
	}
}

// near gives the longest time of a control request while a decision was made, or within a second of it.
func (l lateness) near(d fall) (most time.Duration) {
	for second := d.at.Add(-d.elapsed).Unix() - 1; second <= d.at.Add(d.elapsed).Unix()+1; second++ {
		most = max(most, l[second])
	}
	return most
}

// slow counts the decisions that took longer than a bound, and more than that by a multiple of what control requests took.
func (l *ledger) slow(bound time.Duration, multiple int) (n int) {
	for _, d := range l.all {
		if d.elapsed > bound && d.elapsed > bound+time.Duration(multiple)*l.control.near(d) {
			n++
		}
	}
	return n
}

// strays counts the decisions of fallbacks for paths whose node is healthy, unless the machine was as late there as to use up the timeout:
// by a multiple of what control requests took.
func (l *ledger) strays(healthy func(path string) bool, timeout time.Duration, multiple int) (n int) {
	for _, d := range l.fell {
		if healthy(d.path) && time.Duration(multiple)*l.control.near(d) < timeout {
			n++
		}
	}
	return n
}

// TestSlowDecisions: a decision above its bound is slow, unless requests without a store were as late beside it.
func TestSlowDecisions(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(seconds int, elapsed time.Duration) fall {
		return fall{at: began.Add(time.Duration(seconds) * time.Second), elapsed: elapsed}
	}
	l := &ledger{control: lateness{}, all: []fall{
		at(0, 500*time.Millisecond),  // within the bound
		at(10, 600*time.Millisecond), // The machine was on time.
		at(20, 600*time.Millisecond), // The machine was late by 100 ms.
		at(23, 600*time.Millisecond), // The machine was on time again.
		at(40, 3*time.Second),        // The machine stood still a second before, for 2 s.
	}}
	for second, ms := range map[int]int{10: 1, 20: 100, 23: 1, 39: 2000} {
		l.control.note(began.Add(time.Duration(second)*time.Second), time.Duration(ms)*time.Millisecond)
	}
	if n := l.slow(500*time.Millisecond, 5); n != 2 {
		t.Errorf("%d decisions are slow, want those at 10 s and 23 s", n)
	}
	if n := l.slow(500*time.Millisecond, 0); n != 4 {
		t.Errorf("without regard to the machine, %d decisions are slow, want 4", n)
	}
}

// TestStrays: a fallback for a healthy node counts, unless requests without a store were late beside it.
func TestStrays(t *testing.T) {
	at := func(second int64, path string) fall { return fall{time.Unix(second, 0), 400 * time.Millisecond, path} }
	l := &ledger{control: lateness{}, fell: []fall{at(1000, "/healthy"), at(1000, "/killed"), at(1010, "/healthy"), at(1020, "/healthy")}}
	l.control.note(time.Unix(1010, 0), 79*time.Millisecond)
	l.control.note(time.Unix(1020, 0), 80*time.Millisecond)
	healthy := func(path string) bool { return path == "/healthy" }
	if n := l.strays(healthy, 400*time.Millisecond, 5); n != 2 {
		t.Errorf("%d strays, want those at 1000 and 1010", n)
	}
	if n := l.strays(healthy, 400*time.Millisecond, 0); n != 3 {
		t.Errorf("without regard to the machine, %d strays, want 3", n)
	}
}
