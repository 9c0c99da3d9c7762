package limit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit/twin"
)

// policies returns limits of every algorithm that together cover every code path: whole and
// fractional intervals, one unit and many, tiny and huge values.
func policies() []headgate.Policy {
	limits := []headgate.Limit{
		{Count: 5, Per: time.Second},
		{Count: 3, Per: time.Second},
		{Count: 1, Per: time.Minute},
		{Count: 7, Per: 11 * time.Nanosecond * 1000},
		{Count: 997, Per: time.Second},
		{Count: 100_000_000, Per: time.Second},
		{Count: 1, Per: 24 * time.Hour},
		{Count: 99_999_989, Per: time.Second},
	}
	var all []headgate.Policy
	for _, l := range limits {
		for _, a := range headgate.Algorithms() {
			p := headgate.Policy{Algorithm: a, Limit: l}
			if a == headgate.SlidingLog && l.Count > 1000 {
				continue
			}
			if a == headgate.SlidingWindow {
				p.SubWindows = 1 + int(l.Count%7)
			}
			all = append(all, p)
			if isBucket(a) {
				p.Limit.Burst = l.Count/2 + 3
				p.MaxWait = 3 * time.Second
			} else {
				p.CountRejected = true
			}
			all = append(all, p)
			if a == headgate.FixedWindow {
				p.CountAll = true
				all = append(all, p)
			}
		}
	}
	return all
}

// bans returns bans with small and large counts, shorter and longer than their windows.
func bans() []headgate.Policy {
	return []headgate.Policy{
		{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 5, Per: time.Second}, BanFor: 3 * time.Second},
		{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 1, Per: time.Minute}, BanFor: time.Second},
		{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 0, Per: 11 * time.Microsecond}, BanFor: time.Microsecond},
		{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: headgate.MaxUnits, Per: 24 * time.Hour}, BanFor: time.Hour},
	}
}

// script is a source of steps: a random generator, or a fuzzer's bytes.
type script interface{ Int64N(n int64) int64 }

// TestTwins compares every algorithm with its twin under random traffic.
func TestTwins(t *testing.T) {
	for _, policy := range append(policies(), bans()...) {
		t.Run(fmt.Sprintf("%s/%s/%+v", policy.Algorithm, policy.Limit, policy.CountRejected || policy.MaxWait > 0), func(t *testing.T) {
			for seed := range uint64(6) {
				r := rand.New(rand.NewPCG(seed, 1))
				play(t, policy, r, 150)
			}
		})
	}
}

// FuzzTwins compares the algorithms with the twins under the fuzzer's traffic.
func FuzzTwins(f *testing.F) {
	f.Add(uint8(0), []byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b"))
	f.Add(uint8(20), []byte("\xff\x10\x20\x01\x01\x01\x01\x01\x01\x01\x01\x01"))
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		all := append(policies(), bans()...)
		steps := min(len(text)/3, 100)
		play(t, all[int(which)%len(all)], &written{text}, steps)
	})
}

// written reads numbers from bytes.
type written struct{ text []byte }

func (w *written) Int64N(n int64) int64 {
	if len(w.text) == 0 {
		return 0
	}
	b := w.text[0]
	w.text = w.text[1:]
	return int64(b) % n
}

// play compares subject and twin over steps of traffic: takes, peeks, bookings, refunds,
// pauses, returns and changes of the limit.
func play(t *testing.T, policy headgate.Policy, r script, steps int) {
	t.Helper()
	s, w := newSubject(t, policy), twin.New(policy)
	now := headgate.Instant(1_700_000_000_000_000_000)
	passed := 0
	var receipts []headgate.Receipt
	for step := range steps {
		now += pause(policy, r)
		switch what := r.Int64N(20); {
		case what == 0 && !isBucket(policy.Algorithm) && len(receipts) > 0:
			n := r.Int64N(int64(len(receipts)))
			if s.giveBack(receipts[n], now) {
				w.Return(int(n))
			}
			receipts[n] = headgate.Receipt{From: -1}
		case what == 1 && changeable(policy):
			policy.Limit.Count = max(1, policy.Limit.Count*(1+r.Int64N(4))/2)
			policy.Limit.Count = min(policy.Limit.Count, 1<<30)
			policy.CountAll = policy.CountRejected && policy.Algorithm == headgate.FixedWindow && r.Int64N(2) == 0
			s.change(policy)
			w.Change(policy, now)
		default:
			cost, mode := costOf(policy, r), modeOf(policy, what)
			got, want := s.do(now, cost, mode), w.Do(now, cost, mode)
			compare(t, step, policy, got, want)
			if got.Verdict != headgate.Deny && mode != headgate.Peek && mode != headgate.Refund {
				receipts = append(receipts, got.Receipt)
				passed++
			}
		}
	}
	if bound := s.plan.LogBound(); policy.Algorithm == headgate.SlidingLog && s.maxRing > bound && policy.CountRejected {
		t.Errorf("the log has %d entries, more than LogBound %d", s.maxRing, bound)
	}
}

// changeable reports whether the limit may change during a test. Then the twin must not
// remember more than the state. A log drops refused attempts beyond its Count.
func changeable(p headgate.Policy) bool {
	return p.Algorithm != headgate.SlidingLog || !p.CountRejected
}

// pause returns 0, a moment, about an interval, or about a period.
func pause(p headgate.Policy, r script) headgate.Instant {
	per := int64(p.Limit.Per)
	switch r.Int64N(6) {
	case 0, 1:
		return 0
	case 2:
		return headgate.Instant(r.Int64N(3))
	case 3:
		return headgate.Instant(r.Int64N(2*per/max(p.Limit.Count, 1) + 2))
	case 4:
		return headgate.Instant(per / max(p.Limit.Count, 1))
	default:
		return headgate.Instant(r.Int64N(per+per/2) + 1)
	}
}

func costOf(p headgate.Policy, r script) int64 {
	switch r.Int64N(6) {
	case 0:
		return 0
	case 1:
		return 1 + r.Int64N(max(p.Limit.Count, 1)+1)
	case 2:
		return max(p.Limit.Count/3, 1)
	case 3:
		if p.CountAll {
			return headgate.MaxUnits - r.Int64N(2)
		}
		return 1
	default:
		return 1
	}
}

func modeOf(p headgate.Policy, what int64) headgate.OpKind {
	switch {
	case what < 4:
		return headgate.Peek
	case what < 10 && p.MaxWait > 0:
		return headgate.Book
	case what < 12:
		return headgate.TakeNow
	case what > 17 && Accepts(p.Algorithm, headgate.Refund):
		return headgate.Refund
	default:
		return headgate.Take
	}
}

func compare(t *testing.T, step int, p headgate.Policy, got headgate.Decision, want twin.Answer) {
	t.Helper()
	if got.Verdict != want.Verdict || got.Reason != want.Reason || got.Remaining != want.Remaining {
		t.Fatalf("step %d of %+v:\n got %v %v remaining %d\nwant %v %v remaining %d",
			step, p, got.Verdict, got.Reason, got.Remaining, want.Verdict, want.Reason, want.Remaining)
	}
	if (isBucket(p.Algorithm) || p.Algorithm == headgate.Ban) && (got.RetryAfter != want.Retry || got.ResetAfter != want.Reset) {
		t.Fatalf("step %d of %+v:\n got retry %v reset %v\nwant retry %v reset %v",
			step, p, got.RetryAfter, got.ResetAfter, want.Retry, want.Reset)
	}
}
