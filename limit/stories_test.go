package limit

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// event is one line of a story: what is asked when, and what comes of it.
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

// TestClockSteps: a clock that steps back neither admits twice nor blocks for long.
func TestClockSteps(t *testing.T) {
	two := headgate.Limit{Count: 2, Per: minute}
	stories := map[headgate.Algorithm][]event{
		headgate.TokenBucket: {
			{time.Hour, 2, within, 0, 0},
			{time.Hour - 30*sec, 1, over, 0, 30 * sec},               // half a minute back: as an empty bucket
			{0, 1, over, 0, 30 * sec},                                // an hour back: not an hour's wait
			{30 * sec, 1, within, 0, 0},                              // one refill later it goes on
			{time.Hour + minute, 2, within, 0, 0},                    // and the clock is right again
			{time.Hour + minute, 1, headgate.OverLimit, 0, 30 * sec}, // nothing twice
		},
		headgate.FixedWindow: {
			{time.Hour, 2, within, 0, 0},
			{time.Hour - 1, 1, over, 0, minute + 1}, // just before the edge: the newer window is held
			{0, 1, over, 0, minute},                 // an hour back: the count moves to this window
			{minute, 1, within, 1, 0},               // and no further
		},
		headgate.SlidingLog: {
			{time.Hour, 2, within, 0, 0},
			{time.Hour - 30*sec, 1, over, 0, 90 * sec}, // held at the newest entry
			{0, 1, over, 0, minute},                    // an hour back: the entries move along
			{minute, 1, within, 1, 0},
		},
		headgate.SlidingWindow: {
			{time.Hour, 2, within, 0, 0},
			{time.Hour - 1, 1, over, 0, minute + 2}, // held; a nanosecond into its last quarter the two weigh less than 2
			{0, 1, over, 0, minute + 1},             // an hour back: the counters move along
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

// TestZeroAndTooMuch: nothing asked passes, and more than fits never does.
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
				{0, 4, headgate.Never, 3, 0}, // no RetryAfter: waiting does not help
				{0, headgate.MaxUnits, headgate.Never, 3, 0},
				{0, 0, within, 3, 0},
			})
			tell(t, newSubject(t, none), []event{
				{0, 0, within, 0, 0},
				{0, 1, headgate.Never, 0, 0}, // limit 0 admits nothing
				{time.Hour, 1, headgate.Never, 0, 0},
			})
		})
	}
}

// TestLimitChangedMidway: what was used stays used, and the new limit holds at once.
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
				{"over twice the time it counts apart", 8, 2 * minute, 8},
			} {
				s.change(policy(row.count, row.per))
				if d := s.do(at(0), 0, headgate.Peek); d.Remaining != row.want {
					t.Errorf("%s: remaining %d, want %d", row.what, d.Remaining, row.want)
				}
			}
		})
	}
}

// TestGreatestLimit: without max_wait the greatest number of units is a limit.
func TestGreatestLimit(t *testing.T) {
	for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.LeakyBucket, headgate.FixedWindow} {
		s := newSubject(t, headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: headgate.MaxUnits, Per: sec}})
		if d := s.do(at(0), headgate.MaxUnits, headgate.Take); d.Verdict == headgate.Deny || d.Remaining != 0 {
			t.Errorf("%s: all at once: %+v", a, d)
		}
		if d := s.do(at(0), 1, headgate.Take); d.Verdict != headgate.Deny {
			t.Errorf("%s: one more: %+v", a, d)
		}
	}
}

// TestCompileRefuses: every refusal says what would do.
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
		{"a burst that takes ages", headgate.Policy{Limit: headgate.Limit{Count: 1, Per: day, Burst: 40_000}}, "burst", "use at most 18250"},
		{"a burst of a window", headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1, Per: sec, Burst: 2}}, "burst", "token_bucket"},
		{"counted refusals of a bucket", headgate.Policy{Limit: headgate.Limit{Count: 1, Per: sec}, CountRejected: true}, "count_rejected", "window"},
		{"sub-windows of a log", headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1, Per: sec}, SubWindows: 2}, "sub_windows", "sliding_window"},
		{"no sub-windows", headgate.Policy{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: 1, Per: sec}}, "sub_windows", "1 to 256"},
		{"a log too long", headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: MaxLogCount + 1, Per: sec}}, "count", "sliding_window"},
		{"a wait of a window", headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1, Per: sec}, MaxWait: sec}, "max_wait", "leaky_bucket"},
		{"a wait of more units than can be counted", headgate.Policy{Limit: headgate.Limit{Count: headgate.MaxUnits, Per: time.Microsecond}, MaxWait: time.Hour}, "max_wait", "shorter"},
		{"a negative wait", headgate.Policy{Limit: headgate.Limit{Count: 1, Per: sec}, MaxWait: -1}, "max_wait", "use 0 to"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile(c.policy)
			var fault *PolicyError
			if !errors.As(err, &fault) || fault.Field != c.field || !strings.Contains(err.Error(), c.fix) {
				t.Errorf("got %v, want a fault of %s that says %q", err, c.field, c.fix)
			}
		})
	}
}
