package storetest

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// testClockStories: the decisions after a step back of the clock, and the effect of receipts
// from before the step.
func (s *suite) testClockStories(t *testing.T) {
	for _, row := range []struct {
		name   string
		counts bool
		story  func(b *bench, id headgate.PolicyID)
	}{
		{"the times of a counted refusal are from now", true, refusedAfterAStep},
		{"the RetryAfter of a Peek holds", true, lookAfterAStep},
		{"the RetryAfter of a Peek holds without counted refusals", false, lookAfterAStep},
		{"an expired receipt frees nothing", false, receiptAfterAStep},
	} {
		t.Run(row.name, func(t *testing.T) {
			s.each(t, headgate.Limit{Count: 3, Per: time.Minute}, func(b *bench, p headgate.Policy, _ headgate.PolicyID) {
				if p.Algorithm < headgate.FixedWindow {
					return // Buckets count no refusals. ClockBack tests their bound.
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

// takeAtFiftyBackToTen takes the whole limit at second 50, and sets the clock to second 10.
func (b *bench) takeAtFiftyBackToTen(id headgate.PolicyID) {
	b.clock.Advance(50 * time.Second)
	b.take("k", id, 3)
	b.clock.Advance(-40 * time.Second)
}

// refusedAfterAStep: RetryAfter and ResetAfter of a counted refusal are measured from now,
// not from the time of the state.
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

// lookAfterAStep: the decision of a Peek is correct.
func lookAfterAStep(b *bench, id headgate.PolicyID) {
	b.takeAtFiftyBackToTen(id)
	d := b.apply(headgate.Op{Key: "k", Policy: id, Cost: 1, Kind: headgate.Peek})[0]
	if d.Verdict != headgate.Deny {
		b.t.Fatalf("a look at a fourth unit: %+v", d)
	}
	b.passesAfter("a look", id, d.RetryAfter)
}

// passesAfter checks with Peek that a unit passes after retry, and not a microsecond before.
// Afterwards the clock is back at its former time.
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

// receiptAfterAStep: a unit taken at second 7 has expired when three units are taken at second
// 200. After a step back to second 5, its receipt does not free any of the three.
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
