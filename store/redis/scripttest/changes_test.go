package script_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestReturnedOnceUnderAnotherCount: after a Take under another Count, a receipt is still returned
// only once. Units of the same microsecond share an entry of the log, so a second return would take
// units of other receipts.
func TestReturnedOnceUnderAnotherCount(t *testing.T) {
	b := newBench(t, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 10, Per: time.Second}})
	first := b.take("k", 4)
	b.take("k", 6) // The clock stands still, as for decisions of one batch.
	b.giveBack(first.Receipt)
	b.id = b.prepare(headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 20, Per: time.Second}})
	b.take("k", 1)
	b.wantRemaining("with the larger Count", "k", 13)
	b.giveBack(first.Receipt)
	b.wantRemaining("after a second return", "k", 13)
}

// TestReceiptsFromBeforeDeparturesWereBooked: a bucket changes to a limit with MaxWait, and bookings
// follow. An earlier receipt then returns no tokens, because the bookings depend on these tokens.
func TestReceiptsFromBeforeDeparturesWereBooked(t *testing.T) {
	l := headgate.Limit{Count: 10, Per: time.Second}
	for name, before := range map[string]headgate.Policy{
		"no wait":        {Limit: l},
		"a larger burst": {Limit: headgate.Limit{Count: 10, Per: time.Second, Burst: 30}},
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
						t.Fatalf("%d units depart within %v, want at most %d", n, to.Sub(from), most)
					}
				}
			}
		})
	}
}
