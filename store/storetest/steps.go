package storetest

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// testClockStories: what callers are told after a step back of the clock, and what
// receipts from before it give back.
func (s *suite) testClockStories(t *testing.T) {
	for _, row := range []struct {
		name   string
		counts bool
		story  func(b *bench, id headgate.PolicyID)
	}{
		{"the times of a counted refusal are from now", true, refusedAfterAStep},
		{"a look's RetryAfter holds", true, lookAfterAStep},
		{"a look's RetryAfter holds without counted refusals", false, lookAfterAStep},
		{"an expired receipt frees nothing", false, receiptAfterAStep},
	} {
		t.Run(row.name, func(t *testing.T) {
			s.each(t, headgate.Limit{Count: 3, Per: time.Minute}, func(b *bench, p headgate.Policy, _ headgate.PolicyID) {
				if p.Algorithm < headgate.FixedWindow {
					return // Buckets count no refusals, and are held by their horizon: ClockBack.
				}
				p.CountRejected = row.counts
				if p.Algorithm == headgate.SlidingWindow {
					p.SubWindows = 6
				}
				row.story(b, b.prepare(p))
			})
		})
	}
	s.each(t, headgate.Limit{Count: 3, Per: time.Minute}, func(b *bench, _ headgate.Policy, id headgate.PolicyID) {
		if d := b.take("k", id, 0); !d.Receipt.Empty() {
			b.t.Errorf("a take of nothing has the receipt %+v", d.Receipt)
		}
	})
}

// takeAtFiftyBackToTen takes all at second 50, and puts the clock at second 10.
func (b *bench) takeAtFiftyBackToTen(id headgate.PolicyID) {
	b.clock.Advance(50 * time.Second)
	b.take("k", id, 3)
	b.clock.Advance(-40 * time.Second)
}

// refusedAfterAStep: RetryAfter and ResetAfter of a refusal that counts are times from
// now, not from when the state is held.
func refusedAfterAStep(b *bench, id headgate.PolicyID) {
	b.takeAtFiftyBackToTen(id)
	d := b.take("k", id, 1)
	if d.Verdict != headgate.Deny {
		b.t.Fatalf("a fourth unit: %+v", d)
	}
	b.passesAfter("a counted refusal", id, d.RetryAfter)
	b.clock.Advance(d.ResetAfter)
	b.wantRemaining("after the ResetAfter of a counted refusal", "k", id, 3)
}

// lookAfterAStep: what a look tells holds.
func lookAfterAStep(b *bench, id headgate.PolicyID) {
	b.takeAtFiftyBackToTen(id)
	d := b.apply(headgate.Op{Key: "k", Policy: id, Cost: 1, Kind: headgate.Peek})[0]
	if d.Verdict != headgate.Deny {
		b.t.Fatalf("a look at a fourth unit: %+v", d)
	}
	b.passesAfter("a look", id, d.RetryAfter)
}

// passesAfter checks, by looks, that a unit passes after retry, and not a microsecond
// before. The clock is where it was afterwards.
func (b *bench) passesAfter(what string, id headgate.PolicyID, retry time.Duration) {
	b.t.Helper()
	look := headgate.Op{Key: "k", Policy: id, Cost: 1, Kind: headgate.Peek}
	b.clock.Advance(retry - time.Microsecond)
	if d := b.apply(look)[0]; d.Verdict == headgate.Allow {
		b.t.Errorf("%s: passes before the RetryAfter of %v", what, retry)
	}
	b.clock.Advance(time.Microsecond)
	if d := b.apply(look)[0]; d.Verdict != headgate.Allow {
		b.t.Errorf("%s: refused after the RetryAfter of %v: %+v", what, retry, d)
	}
	b.clock.Advance(-retry)
}

// receiptAfterAStep: a unit taken at second 7 has expired when three are taken at second
// 200. After a step back to second 5 its receipt frees none of these.
func receiptAfterAStep(b *bench, id headgate.PolicyID) {
	b.clock.Advance(7 * time.Second)
	first := b.take("k", id, 1)
	b.clock.Advance(193 * time.Second)
	b.take("k", id, 3)
	b.clock.Advance(-195 * time.Second)
	b.take("k", id, 1)
	b.giveBack(first.Receipt)
	if d := b.take("k", id, 1); d.Verdict == headgate.Allow {
		b.t.Error("an expired receipt has freed a unit")
	}
}
