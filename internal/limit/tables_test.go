package limit

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// at returns the instant d after a midnight of 2024, to match the clock times of the sources.
func at(d time.Duration) headgate.Instant {
	return headgate.Instant(1_704_067_200_000_000_000) + headgate.Instant(d)
}

// clock parses a time of day such as "09:31:22".
func clock(t *testing.T, text string) headgate.Instant {
	t.Helper()
	c, err := time.Parse("15:04:05", text)
	if err != nil {
		t.Fatal(err)
	}
	return at(time.Duration(c.Hour())*time.Hour + time.Duration(c.Minute())*time.Minute + time.Duration(c.Second())*time.Second)
}

// TestGCRATable has the worked example of redis-cell and throttlecrab: 1 per second, burst 5.
func TestGCRATable(t *testing.T) {
	s := newSubject(t, headgate.Policy{Limit: headgate.Limit{Count: 1, Per: time.Second, Burst: 5}})
	for _, row := range []struct {
		now, cost, remaining, reset, retry int64
		reason                             headgate.Reason
	}{
		{0, 6, 5, 0, 0, headgate.Never}, // The cost exceeds the burst.
		{0, 1, 4, 1000, 0, headgate.WithinLimit},
		{0, 1, 3, 2000, 0, headgate.WithinLimit},
		{0, 1, 2, 3000, 0, headgate.WithinLimit},
		{0, 1, 1, 4000, 0, headgate.WithinLimit},
		{0, 1, 0, 5000, 0, headgate.WithinLimit},
		{0, 1, 0, 5000, 1000, headgate.OverLimit}, // The sixth unit of five is refused.
		{3000, 1, 2, 3000, 0, headgate.WithinLimit},
		{3100, 1, 1, 3900, 0, headgate.WithinLimit},
		{4000, 1, 1, 4000, 0, headgate.WithinLimit},
		{8000, 1, 4, 1000, 0, headgate.WithinLimit},
		{9500, 1, 4, 1000, 0, headgate.WithinLimit},
		{9500, 0, 4, 1000, 0, headgate.WithinLimit}, // A cost of 0 reads the state.
		{9500, 2, 2, 3000, 0, headgate.WithinLimit},
		{9500, 5, 2, 3000, 3000, headgate.OverLimit},
	} {
		d := s.do(at(time.Duration(row.now)*time.Millisecond), row.cost, headgate.Take)
		if d.Reason != row.reason || d.Remaining != row.remaining || d.ResetAfter.Milliseconds() != row.reset || d.RetryAfter.Milliseconds() != row.retry {
			t.Errorf("at %d ms, cost %d: %v remaining %d reset %v retry %v, want %+v", row.now, row.cost, d.Reason, d.Remaining, d.ResetAfter, d.RetryAfter, row)
		}
	}
}

// TestSlidingLogTable has the example of the sorted-set article, 5 in 60 s, with and
// without counted refusals. Request 5 comes at 09:31:22. At 09:31:25 the second request
// would be exactly 60 s old, and so outside the window.
func TestSlidingLogTable(t *testing.T) {
	all := newSubject(t, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 5, Per: time.Minute}, CountRejected: true})
	passed := newSubject(t, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 5, Per: time.Minute}})
	for _, row := range []struct {
		time               string
		remaining          int64 // for requests that pass when refused attempts count
		passesAll          bool
		remainingIfPassed  int64 // for requests that pass when refused attempts do not count
		passesIfPassedOnly bool
	}{
		{"09:30:20", 4, true, 4, true},
		{"09:30:25", 3, true, 3, true},
		{"09:30:50", 2, true, 2, true},
		{"09:31:10", 1, true, 1, true},
		{"09:31:22", 1, true, 1, true},
		{"09:31:45", 1, true, 1, true},
		{"09:31:48", 0, true, 0, true},
		{"09:32:05", 0, true, 0, true},
		{"09:32:09", 0, false, 0, false}, // the sixth request
		{"09:32:15", 0, false, 0, true},  // The two ways of counting differ here.
		{"09:32:46", 0, true, 1, true},
	} {
		now := clock(t, row.time)
		a, b := all.do(now, 1, headgate.Take), passed.do(now, 1, headgate.Take)
		if (a.Verdict == headgate.Allow) != row.passesAll || a.Remaining != row.remaining {
			t.Errorf("%s, refused attempts counted: %v remaining %d, want %v, %d", row.time, a.Verdict, a.Remaining, row.passesAll, row.remaining)
		}
		if (b.Verdict == headgate.Allow) != row.passesIfPassedOnly || b.Remaining != row.remainingIfPassed {
			t.Errorf("%s, refused attempts not counted: %v remaining %d, want %v, %d", row.time, b.Verdict, b.Remaining, row.passesIfPassedOnly, row.remainingIfPassed)
		}
	}
}

// TestSlidingLogEdge checks that an entry as old as the window no longer counts.
func TestSlidingLogEdge(t *testing.T) {
	s := newSubject(t, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1, Per: time.Minute}})
	for _, row := range []struct {
		now    headgate.Instant
		passes bool
	}{
		{at(0), true},
		{at(time.Minute - 1), false},
		{at(time.Minute), true},
	} {
		if d := s.do(row.now, 1, headgate.Take); (d.Verdict == headgate.Allow) != row.passes {
			t.Errorf("at %v: the verdict is %v, want allow to be %v", row.now, d.Verdict, row.passes)
		}
	}
}

// TestDistributedArticle has the acceptance table for 100 calls per minute.
func TestDistributedArticle(t *testing.T) {
	hundred := headgate.Limit{Count: 100, Per: time.Minute}
	t.Run("fixed window, 100 requests on each side of an edge", func(t *testing.T) {
		s := newSubject(t, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: hundred})
		passes(t, s, clock(t, "07:09:59"), 100, 0)
		passes(t, s, clock(t, "07:10:00"), 100, 0)
	})
	t.Run("fixed window, 07:10:23 counts from 07:10:00", func(t *testing.T) {
		s := newSubject(t, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: hundred})
		passes(t, s, clock(t, "07:09:59"), 60, 0)
		passes(t, s, clock(t, "07:10:00"), 60, 0)
		passes(t, s, clock(t, "07:10:23"), 40, 20)
	})
	t.Run("token bucket, 50 tokens in 30 s and at most 100", func(t *testing.T) {
		s := newSubject(t, headgate.Policy{Limit: hundred})
		passes(t, s, at(0), 100, 1)
		passes(t, s, at(30*time.Second), 50, 1)
		passes(t, s, at(3*time.Minute), 100, 1)
	})
	t.Run("sliding counter, the current window and 17/60 of the previous one", func(t *testing.T) {
		s := newSubject(t, headgate.Policy{Algorithm: headgate.SlidingWindow, SubWindows: 1, Limit: hundred})
		passes(t, s, clock(t, "00:00:30"), 60, 0)
		d := s.do(clock(t, "00:01:43"), 1, headgate.Take)
		if want := int64(100 - 1 - 60*17/60); d.Remaining != want {
			t.Errorf("Remaining is %d, want %d", d.Remaining, want)
		}
	})
	t.Run("60 s in sub-windows of 15 s need five counters", func(t *testing.T) {
		s := newSubject(t, headgate.Policy{Algorithm: headgate.SlidingWindow, SubWindows: 4, Limit: hundred})
		for _, d := range []time.Duration{5 * time.Second, 20 * time.Second, 35 * time.Second, 50 * time.Second} {
			passes(t, s, at(d), 10, 0)
		}
		// At 65 s the four full sub-windows cover 15 to 75 s. The oldest, 0 to 15 s, weighs 10/15.
		if d := s.do(at(65*time.Second), 0, headgate.Take); d.Remaining != 100-30-10*10/15 {
			t.Errorf("Remaining is %d, want %d", d.Remaining, 100-30-10*10/15)
		}
		if n := s.plan.WindowCounters(); n != 5 {
			t.Errorf("%d counters, want 5", n)
		}
	})
}

// passes sends allowed + refused requests at once, and checks both numbers.
func passes(t *testing.T, s *subject, now headgate.Instant, allowed, refused int) {
	t.Helper()
	n := 0
	for range allowed + refused {
		if s.do(now, 1, headgate.Take).Verdict == headgate.Allow {
			n++
		}
	}
	if n != allowed {
		t.Errorf("%d of %d requests passed, want %d", n, allowed+refused, allowed)
	}
}

// TestDesignArticle has the acceptance table of the overload article.
func TestDesignArticle(t *testing.T) {
	for _, a := range []headgate.Algorithm{headgate.SlidingLog, headgate.FixedWindow} {
		t.Run("2,500 against 2,000 in 1,200 s by "+a.String(), func(t *testing.T) {
			s := newSubject(t, headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 2000, Per: 1200 * time.Second}})
			refused := 0
			for i := range 2500 {
				if s.do(at(time.Duration(i)*400*time.Millisecond), 1, headgate.Take).Verdict == headgate.Deny {
					refused++
				}
			}
			if refused != 500 {
				t.Errorf("%d requests refused, want 500", refused)
			}
		})
	}
	for _, counted := range []bool{true, false} {
		s := newSubject(t, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 2, Per: time.Minute}, CountRejected: counted})
		for _, row := range []struct {
			time   string
			passes bool
		}{{"01:00:01", true}, {"01:00:30", true}, {"01:00:50", false}, {"01:01:40", true}} {
			if d := s.do(clock(t, row.time), 1, headgate.Take); (d.Verdict == headgate.Allow) != row.passes {
				t.Errorf("log, refused counted %v, %s: %v", counted, row.time, d.Verdict)
			}
		}
	}
	// The limit is 7 per minute. The minute before had 5 units, and this minute has 3 after
	// 30 % of its time. The estimate is 3 + 5 x 0.7 = 6.5, rounded down to 6, so one more
	// unit gives 7.
	s := newSubject(t, headgate.Policy{Algorithm: headgate.SlidingWindow, SubWindows: 1, Limit: headgate.Limit{Count: 7, Per: time.Minute}})
	passes(t, s, at(30*time.Second), 5, 0)
	passes(t, s, at(61*time.Second), 2, 0)
	passes(t, s, at(70*time.Second), 1, 0)
	passes(t, s, at(78*time.Second), 1, 1)
}
