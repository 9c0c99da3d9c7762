package redis_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestLogHoldsItsTime: after a small step back of the clock a log decides at its
// newest entry, so that its entries stay in order.
func TestLogHoldsItsTime(t *testing.T) {
	b := newBench(t, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 5, Per: time.Second}})
	first := b.take("k", 1)
	b.clock.Advance(-time.Millisecond)
	second := b.take("k", 2)
	if second.At != first.At || second.ResetAfter != time.Second+time.Millisecond {
		t.Errorf("decided at %v, %v ahead of the reset; want at %v, 1.001s ahead", second.At, second.ResetAfter, first.At)
	}
	b.giveBack(first.Receipt)
	b.wantRemaining("after a return", "k", 3)
}

// TestBookToTheEdge: the last departure that MaxWait allows is booked.
func TestBookToTheEdge(t *testing.T) {
	b := newBench(t, headgate.Policy{Limit: headgate.Limit{Count: 10, Per: time.Second}, MaxWait: 300 * time.Millisecond})
	b.take("k", 10)
	book := headgate.Op{Key: "k", Policy: b.id, Cost: 3, Kind: headgate.Book}
	if d := apply(t, b.store, book)[0]; d.Verdict != headgate.Wait || d.RetryAfter != 300*time.Millisecond {
		t.Errorf("three ahead: %v in %v, want to wait for 300ms", d.Verdict, d.RetryAfter)
	}
	book.Cost = 1
	if d := apply(t, b.store, book)[0]; d.Reason != headgate.WaitTooLong || d.RetryAfter != 100*time.Millisecond {
		t.Errorf("a fourth: %v in %v, want wait_too_long, and 100ms", d.Reason, d.RetryAfter)
	}
}
