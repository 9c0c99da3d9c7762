package limit

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// event is one line of a test table: a request, and the expected decision.
type event struct {
	after     time.Duration
	cost      int64
	reason    headgate.Reason
	remaining int64
	retry     time.Duration
}

func tell(t *testing.T, s *subject, story []event) {
	t.Helper()
	for i, e := range story {
		d := s.do(at(e.after), e.cost, headgate.Take)
		if d.Reason != e.reason || d.Remaining != e.remaining || d.RetryAfter != e.retry {
			t.Errorf("line %d, %v: %v remaining %d retry %v, want %+v", i, e.after, d.Reason, d.Remaining, d.RetryAfter, e)
		}
	}
}

const (
	within = headgate.WithinLimit
	over   = headgate.OverLimit
	sec    = time.Second
	minute = time.Minute
)

// TestClockSteps checks that a step back of the clock admits no unit twice and does not
// block for long.
func TestClockSteps(t *testing.T) {
	two := headgate.Limit{Count: 2, Per: minute}
	stories := map[headgate.Algorithm][]event{
		headgate.TokenBucket: {
			{time.Hour, 2, within, 0, 0},
			{time.Hour - 30*sec, 1, over, 0, 30 * sec},               // The clock is half a minute back: the bucket is empty.
			{0, 1, over, 0, 30 * sec},                                // The clock is an hour back, and the wait is short.
			{30 * sec, 1, within, 0, 0},                              // One interval later a request passes.
			{time.Hour + minute, 2, within, 0, 0},                    // The clock is corrected.
			{time.Hour + minute, 1, headgate.OverLimit, 0, 30 * sec}, // No unit passes twice.
		},
		headgate.FixedWindow: {
			{time.Hour, 2, within, 0, 0},
			{time.Hour - 1, 1, over, 0, minute + 1}, // The clock is just before the edge: the cell keeps the newer window.
			{0, 1, over, 0, minute},                 // The clock is an hour back: the count moves to this window.
			{minute, 1, within, 1, 0},               // The count does not move to the next window.
		},
		headgate.SlidingLog: {
			{time.Hour, 2, within, 0, 0},
			{time.Hour - 30*sec, 1, over, 0, 90 * sec}, // The log decides at its newest entry.
			{0, 1, over, 0, minute},                    // The clock is an hour back: the entries move to the present.
			{minute, 1, within, 1, 0},
		},
		headgate.SlidingWindow: {
			{time.Hour, 2, within, 0, 0},
			{time.Hour - 1, 1, over, 0, minute + 2}, // A nanosecond into the last quarter, the two units weigh less than 2.
			{0, 1, over, 0, minute + 1},             // The clock is an hour back: the counters move to the present.
			{75 * sec, 2, within, 0, 0},
		},
	}
	for a, story := range stories {
		t.Run(a.String(), func(t *testing.T) {
			p := headgate.Policy{Algorithm: a, Limit: two}
			if a == headgate.SlidingWindow {
				p.SubWindows = 4
			}
			tell(t, newSubject(t, p), story)
		})
	}
}

// TestZeroAndTooMuch checks that a cost of 0 passes, and that a cost above the limit never does.
func TestZeroAndTooMuch(t *testing.T) {
	for _, a := range headgate.Algorithms() {
		t.Run(a.String(), func(t *testing.T) {
			p := headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 3, Per: sec}}
			none := headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 0, Per: sec}}
			if a == headgate.SlidingWindow {
				p.SubWindows, none.SubWindows = 4, 4
			}
			tell(t, newSubject(t, p), []event{
				{0, 0, within, 3, 0},
				{0, 4, headgate.Never, 3, 0}, // RetryAfter is 0 because no wait helps.
				{0, headgate.MaxUnits, headgate.Never, 3, 0},
				{0, 0, within, 3, 0},
			})
			tell(t, newSubject(t, none), []event{
				{0, 0, within, 0, 0},
				{0, 1, headgate.Never, 0, 0}, // A limit of 0 admits nothing.
				{time.Hour, 1, headgate.Never, 0, 0},
			})
		})
	}
}

// TestLimitChangedMidway checks that used units stay used, and that a new limit applies at once.
func TestLimitChangedMidway(t *testing.T) {
	for _, a := range headgate.Algorithms() {
		policy := func(count int64, per time.Duration) headgate.Policy {
			p := headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: count, Per: per}}
			if a == headgate.SlidingWindow {
				p.SubWindows = 2
			}
			return p
		}
		t.Run(a.String(), func(t *testing.T) {
			s := newSubject(t, policy(10, minute))
			s.do(at(0), 6, headgate.Take)
			for _, row := range []struct {
				what  string
				count int64
				per   time.Duration
				want  int64
			}{
				{"raised to 20", 20, minute, 14},
				{"lowered to 8", 8, minute, 2},
				{"lowered to 4", 4, minute, 0},
				{"raised to 1000", 1000, minute, 994},
				{"a period twice as long counts separately", 8, 2 * minute, 8},
			} {
				s.change(policy(row.count, row.per))
				if d := s.do(at(0), 0, headgate.Peek); d.Remaining != row.want {
					t.Errorf("%s: remaining %d, want %d", row.what, d.Remaining, row.want)
				}
			}
		})
	}
}

// TestGreatestLimit checks that MaxUnits is a valid limit without max_wait.
func TestGreatestLimit(t *testing.T) {
	for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.LeakyBucket, headgate.FixedWindow} {
		s := newSubject(t, headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: headgate.MaxUnits, Per: sec}})
		if d := s.do(at(0), headgate.MaxUnits, headgate.Take); d.Verdict == headgate.Deny || d.Remaining != 0 {
			t.Errorf("%s: a take of all units gives %+v, want allow", a, d)
		}
		if d := s.do(at(0), 1, headgate.Take); d.Verdict != headgate.Deny {
			t.Errorf("%s: a further take gives %+v, want deny", a, d)
		}
	}
}

// TestCompileRefuses checks the field and the fix in each error.
func TestCompileRefuses(t *testing.T) {
	day := 24 * time.Hour
	for _, c := range []struct {
		name   string
		policy headgate.Policy
		field  string
		fix    string
	}{
		{"an unknown algorithm", headgate.Policy{Algorithm: 9, Limit: headgate.Limit{Count: 1, Per: sec}}, "algorithm", "token_bucket"},
		{"a negative count", headgate.Policy{Limit: headgate.Limit{Count: -1, Per: sec}}, "count", "use 0 to"},
		{"a count beyond 2^53", headgate.Policy{Limit: headgate.Limit{Count: headgate.MaxUnits + 1, Per: sec}}, "count", "9007199254740991"},
		{"no period", headgate.Policy{Limit: headgate.Limit{Count: 1}}, "period", "1µs"},
		{"a period of two years", headgate.Policy{Limit: headgate.Limit{Count: 1, Per: 731 * day}}, "period", "367d"},
		{"a burst that refills too slowly", headgate.Policy{Limit: headgate.Limit{Count: 1, Per: day, Burst: 40_000}}, "burst", "use at most 18250"},
		{"a burst of a window", headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1, Per: sec, Burst: 2}}, "burst", "token_bucket"},
		{"count_rejected of a bucket", headgate.Policy{Limit: headgate.Limit{Count: 1, Per: sec}, CountRejected: true}, "count_rejected", "window"},
		{"sub-windows of a log", headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1, Per: sec}, SubWindows: 2}, "sub_windows", "sliding_window"},
		{"no sub-windows", headgate.Policy{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: 1, Per: sec}}, "sub_windows", "1 to 256"},
		{"a log too long", headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: MaxLogCount + 1, Per: sec}}, "count", "sliding_window"},
		{"max_wait of a window", headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1, Per: sec}, MaxWait: sec}, "max_wait", "leaky_bucket"},
		{"a max_wait above 2^53 units", headgate.Policy{Limit: headgate.Limit{Count: headgate.MaxUnits, Per: time.Microsecond}, MaxWait: time.Hour}, "max_wait", "shorter"},
		{"a negative max_wait", headgate.Policy{Limit: headgate.Limit{Count: 1, Per: sec}, MaxWait: -1}, "max_wait", "use 0 to"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile(c.policy)
			var fault *PolicyError
			if !errors.As(err, &fault) || fault.Field != c.field || !strings.Contains(err.Error(), c.fix) {
				t.Errorf("got error %v, want field %s and text %q", err, c.field, c.fix)
			}
		})
	}
}
