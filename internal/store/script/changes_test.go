package script_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestReturnedOnceUnderAnotherCount: a receipt that was returned is not good again when
// another Count takes: units of the same microsecond are another's.
func TestReturnedOnceUnderAnotherCount(t *testing.T) {
	b := newBench(t, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 10, Per: time.Second}})
	first := b.take("k", 4)
	b.take("k", 6) // At the same time, as decisions of one batch are.
	b.giveBack(first.Receipt)
	b.id = b.prepare(headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 20, Per: time.Second}})
	b.take("k", 1)
	b.wantRemaining("with the greater count", "k", 13)
	b.giveBack(first.Receipt)
	b.wantRemaining("returned again", "k", 13)
}

// TestReceiptsFromBeforeDeparturesWereBooked: a bucket's limit that has come to book
// departures is another: a receipt from before gives no tokens to somebody at the
// departures of those who wait.
func TestReceiptsFromBeforeDeparturesWereBooked(t *testing.T) {
	l := headgate.Limit{Count: 10, Per: time.Second}
	for name, before := range map[string]headgate.Policy{
		"no wait":        {Limit: l},
		"a longer burst": {Limit: headgate.Limit{Count: 10, Per: time.Second, Burst: 30}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, before)
			first := b.take("k", 10)
			b.id = b.prepare(headgate.Policy{Limit: l, MaxWait: time.Second})
			var departures []headgate.Instant
			op := headgate.Op{Key: "k", Policy: b.id, Cost: 1, Kind: headgate.Book}
			for {
				d := apply(t, b.store, op)[0]
				if d.Verdict == headgate.Deny {
					break
				}
				departures = append(departures, d.At.Add(d.RetryAfter))
			}
			b.giveBack(first.Receipt)
			b.clock.Advance(time.Second)
			for {
				d := b.take("k", 1)
				if d.Verdict == headgate.Deny {
					break
				}
				departures = append(departures, d.At)
			}
			for i, from := range departures {
				for _, to := range departures[i:] {
					n := 0
					for _, at := range departures {
						if at >= from && at <= to {
							n++
						}
					}
					if most := 10 + int(to.Sub(from)*10/time.Second); n > most {
						t.Fatalf("%d leave within %v, more than %d", n, to.Sub(from), most)
					}
				}
			}
		})
	}
}
