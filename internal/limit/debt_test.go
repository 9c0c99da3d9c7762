package limit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit/twin"
)

const began = headgate.Instant(1_700_000_000_000_000_000)

// owing returns the policies of every algorithm with the limits and overdrafts.
func owing(overdrafts []int64, limits ...headgate.Limit) (all []headgate.Policy) {
	for _, l := range limits {
		for _, a := range headgate.Algorithms() {
			for _, overdraft := range overdrafts {
				p := headgate.Policy{Algorithm: a, Limit: l, Overdraft: overdraft}
				if a != headgate.SlidingWindow {
					all = append(all, p)
					continue
				}
				for _, n := range []int{1, 2, 3, 7, 20} {
					p.SubWindows = n
					all = append(all, p)
				}
			}
		}
	}
	return all
}

func nameOf(p headgate.Policy) string {
	return fmt.Sprintf("%s/%d/%s/%d", p.Algorithm, p.SubWindows, p.Limit, p.Overdraft)
}

// TestDebts compares debts with the twins, and tries each RetryAfter.
func TestDebts(t *testing.T) {
	limits := []headgate.Limit{{Count: 10, Per: time.Second}, {Count: 7, Per: 11 * time.Microsecond}, {Count: 1, Per: time.Minute}}
	for _, p := range owing([]int64{0, 10, 45, headgate.MaxUnits}, limits...) {
		t.Run(nameOf(p), func(t *testing.T) {
			for seed := range uint64(4) {
				playDebts(t, p, rand.New(rand.NewPCG(seed, 7)), 120)
			}
		})
	}
}

func playDebts(t *testing.T, p headgate.Policy, r *rand.Rand, steps int) {
	t.Helper()
	s, w, now := newSubject(t, p), twin.New(p), began
	for step := range steps {
		now += pause(p, r)
		if r.IntN(12) == 0 {
			now += headgate.Instant(r.Int64N(20 * int64(p.Limit.Per)))
		}
		cost, mode := costOf(p, r), headgate.Take
		switch r.IntN(6) {
		case 0:
			mode, cost = headgate.Charge, cost*r.Int64N(30)
		case 1:
			mode = headgate.Peek
		}
		before := s.clone()
		got, want := s.do(now, cost, mode), w.Do(now, cost, mode)
		if mode == headgate.Charge && got.Receipt.Cost != want.Charged {
			t.Fatalf("step %d: a Charge of %d counts %d, the twin %d", step, cost, got.Receipt.Cost, want.Charged)
		}
		compare(t, step, p, got, want)
		if got.Verdict == headgate.Deny && got.Reason != headgate.Never {
			retries(t, before, now, cost, got.RetryAfter)
		}
		full := s.clone().do(now.Add(got.ResetAfter), 0, headgate.Peek)
		if full.Remaining != full.Limit || full.ResetAfter != 0 {
			t.Fatalf("step %d: after the ResetAfter %s: %+v", step, got.ResetAfter, full)
		}
	}
}

// retries checks that a request passes after a RetryAfter, and not one nanosecond before.
func retries(t *testing.T, s *subject, now headgate.Instant, cost int64, after time.Duration) {
	t.Helper()
	if d := s.clone().do(now.Add(after), cost, headgate.Peek); d.Verdict == headgate.Deny {
		t.Fatalf("%d units are refused after the RetryAfter %s: %+v", cost, after, d)
	}
	if d := s.clone().do(now.Add(after-1), cost, headgate.Peek); d.Verdict != headgate.Deny {
		t.Fatalf("%d units pass 1 ns before the RetryAfter %s", cost, after)
	}
}

// TestMeanOfDebts: a client whose answers cost more than the limit uses the limit in the long run,
// within one answer, however often it asks.
func TestMeanOfDebts(t *testing.T) {
	for _, c := range []struct {
		limit  headgate.Limit
		answer int64
	}{
		{headgate.Limit{Count: 10, Per: time.Second}, 100},
		{headgate.Limit{Count: 1000, Per: time.Minute}, 10_000},
		{headgate.Limit{Count: 1000, Per: time.Minute}, 1700},
		{headgate.Limit{Count: 10, Per: time.Second}, 13},
	} {
		for _, p := range owing([]int64{headgate.MaxUnits}, c.limit) {
			t.Run(fmt.Sprintf("%s/%d", nameOf(p), c.answer), func(t *testing.T) {
				used := spendAnswers(newSubject(t, p), c.answer, 20*p.Limit.Per)
				most, least := 20*p.Limit.Count+c.answer, 20*p.Limit.Count-c.answer
				if p.Algorithm != headgate.SlidingLog {
					most += p.Limit.Count // The full bucket at the beginning, or the rest of an aligned window.
				}
				if used > most || used < least {
					t.Errorf("%d units in 20 windows, want %d to %d", used, least, most)
				}
			})
		}
	}
}

// spendAnswers asks as often as it may, and a little more often, and returns the units of the answers.
func spendAnswers(s *subject, answer int64, length time.Duration) (used int64) {
	for now := began; now < began.Add(length); {
		d := s.do(now, 1, headgate.TakeNow)
		if d.Verdict == headgate.Deny {
			now += max(1, min(headgate.Instant(d.RetryAfter), headgate.Instant(length)/70))
			continue
		}
		s.do(now, answer-1, headgate.Charge)
		used += answer
	}
	return used
}

// TestDebtsOfVersions: a version pays a debt at its own rate, and one without an overdraft forgives what
// windows owe.
func TestDebtsOfVersions(t *testing.T) {
	for _, p := range owing([]int64{headgate.MaxUnits}, headgate.Limit{Count: 10, Per: time.Second}) {
		t.Run(nameOf(p), func(t *testing.T) {
			for _, count := range []int64{5, 10, 20} {
				s := newSubject(t, p)
				s.do(began, 100, headgate.Charge)
				other := p
				other.Limit.Count = count
				s.change(other)
				before := s.clone()
				d := s.do(began, 1, headgate.Take)
				least, most := time.Duration(100/count-3)*time.Second, time.Duration(100/count+3)*time.Second
				if d.Verdict != headgate.Deny || d.RetryAfter < least || d.RetryAfter > most {
					t.Errorf("at %d/s, a debt of 100 leaves %+v", count, d)
				}
				if !isBucket(p.Algorithm) {
					retries(t, before, began, 1, d.RetryAfter)
				}
			}
		})
	}
}

// TestRefundOfDebt: a Refund pays a debt.
func TestRefundOfDebt(t *testing.T) {
	for _, p := range owing([]int64{100}, headgate.Limit{Count: 10, Per: time.Second}) {
		if !Accepts(p.Algorithm, headgate.Refund) {
			continue
		}
		s := newSubject(t, p)
		if d := s.do(began, 1000, headgate.Charge); d.Receipt.Cost != 110 || d.Remaining != 0 {
			t.Errorf("%s: a Charge of 1000: %+v", nameOf(p), d)
		}
		if d := s.do(began, 103, headgate.Refund); d.Remaining != 3 {
			t.Errorf("%s: a Refund of 103 of 110 leaves %+v", nameOf(p), d)
		}
	}
}

// TestDebtClockBack: a key waits for its debt and the step at most, and a limit of 0 owes nothing.
func TestDebtClockBack(t *testing.T) {
	for _, p := range owing([]int64{0, 10, 100}, headgate.Limit{Count: 10, Per: time.Second}) {
		for _, step := range []time.Duration{time.Millisecond, time.Second, time.Minute, 24 * time.Hour} {
			s := newSubject(t, p)
			s.do(began, 200, headgate.Charge)
			d := s.do(began.Add(-step), 1, headgate.Take)
			most := time.Duration(p.Overdraft/10+3) * time.Second
			if d.RetryAfter > most {
				t.Errorf("%s: after a step back of %s, RetryAfter is %s, more than %s", nameOf(p), step, d.RetryAfter, most)
			}
			if again := s.do(began.Add(d.RetryAfter-step), 1, headgate.TakeNow); again.Verdict != headgate.Allow && p.Algorithm != headgate.LeakyBucket {
				t.Errorf("%s: after a step back of %s: %+v", nameOf(p), step, again)
			}
		}
		p.Limit.Count = 0
		s := newSubject(t, p)
		if d := s.do(began, 5, headgate.Charge); d.Receipt.Cost != 0 || d.Remaining != 0 || d.ResetAfter != 0 {
			t.Errorf("%s: %+v", nameOf(p), d)
		}
	}
}
