package redis_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestLogHoldsItsTime: after a small step back of the clock, a log decides at the time of its
// newest entry. Its entries then stay in order.
func TestLogHoldsItsTime(t *testing.T) {
	b := newBench(t, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 5, Per: time.Second}})
	first := b.take("k", 1)
	b.clock.Advance(-time.Millisecond)
	second := b.take("k", 2)
	if second.At != first.At || second.ResetAfter != time.Second+time.Millisecond {
		t.Errorf("decided at %v with a reset after %v, want %v and 1.001s", second.At, second.ResetAfter, first.At)
	}
	b.giveBack(first.Receipt)
	b.wantRemaining("after a return", "k", 3)
}

// TestBookToTheEdge: the latest departure within MaxWait is booked.
func TestBookToTheEdge(t *testing.T) {
	b := newBench(t, headgate.Policy{Limit: headgate.Limit{Count: 10, Per: time.Second}, MaxWait: 300 * time.Millisecond})
	b.take("k", 10)
	book := headgate.Op{Key: "k", Policy: b.id, Cost: 3, Kind: headgate.Book}
	if d := apply(t, b.store, book)[0]; d.Verdict != headgate.Wait || d.RetryAfter != 300*time.Millisecond {
		t.Errorf("booking of 3 units: got %v after %v, want Wait after 300ms", d.Verdict, d.RetryAfter)
	}
	book.Cost = 1
	if d := apply(t, b.store, book)[0]; d.Reason != headgate.WaitTooLong || d.RetryAfter != 100*time.Millisecond {
		t.Errorf("booking of a fourth unit: got %v after %v, want wait_too_long after 100ms", d.Reason, d.RetryAfter)
	}
}
