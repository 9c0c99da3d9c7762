package http1_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
)

func TestDeadline(t *testing.T) {
	const timeout = 16 * time.Second
	start := time.Unix(1000, 0)
	var d http1.Deadline
	if d.Clear() {
		t.Error("a deadline that was never set must be cleared")
	}
	for _, c := range []struct {
		story   string
		after   time.Duration // since start
		timeout time.Duration
		set     bool
	}{
		{"the first call sets the deadline", 0, timeout, true},
		{"at once, the deadline fits", 0, timeout, false},
		{"a little later, the deadline is slightly early", 999 * time.Millisecond, timeout, false},
		{"a sixteenth later, the deadline is too early", time.Second, timeout, true},
		{"a shorter timeout needs an earlier deadline", time.Second, timeout / 2, true},
		{"a longer timeout needs a later deadline", time.Second, timeout, true},
		{"an expired deadline is set again", time.Hour, timeout, true},
	} {
		set, at := d.Arm(start.Add(c.after), c.timeout)
		if want := start.Add(c.after + c.timeout); set != c.set || !at.Equal(want) {
			t.Errorf("%s: Arm = %v, %v, want %v, %v", c.story, set, at, c.set, want)
		}
	}
	if !d.Clear() || d.Clear() {
		t.Error("Clear must return true once")
	}
}

func TestDeadlineThatFiresEarly(t *testing.T) {
	const timeout = 16 * time.Second
	start := time.Unix(1000, 0)
	var d http1.Deadline
	_, _ = d.Arm(start, timeout)
	_, due := d.Arm(start.Add(time.Second/2), timeout)
	if d.Fired(start.Add(timeout), due) {
		t.Error("timed out half a second early")
	}
	if !d.Fired(due, due) {
		t.Error("not timed out")
	}
	if d.Fired(due, time.Time{}) || d.Clear() {
		t.Error("a call without a bound must remove the deadline")
	}
}
