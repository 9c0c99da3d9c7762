package fairshare

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestPreview decides random requests. A preview equals the decision that follows at the same time, and a limiter with previews decides
// as one without them.
func TestPreview(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		if playPreviews(t, seed); t.Failed() {
			return
		}
	}
}

// previewed is a random configuration. Its seed orders the clients, so that two limiters divide alike.
func previewed(rnd *rand.Rand) Config {
	c := Config{
		Capacity: 1 + rnd.Int64N(200), Cycle: time.Second, Reservation: rnd.IntN(101), NewClientsPerCycle: rnd.IntN(6), ForgetAfter: 1 + rnd.IntN(5),
		MaxClients: 2 + rnd.IntN(12), TrustNames: rnd.IntN(2) == 0, CountOnce: rnd.IntN(3) == 0, Seed: 1 + rnd.Uint64(),
		Reclaim: Reclaim(rnd.IntN(2)),
	}
	if rnd.IntN(2) == 0 {
		c.Weights = map[string]int64{"c0": 3, "c1": 1}
	}
	return c
}

func playPreviews(t *testing.T, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 3))
	c, now := previewed(rnd), headgate.Instant(1000*time.Second)
	l, err := New(now, c)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := New(now, c)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 600 {
		switch rnd.IntN(12) {
		case 0:
			now = now.Add(time.Duration(rnd.Int64N(int64(3 * time.Second))))
		case 1, 2, 3:
			now = now.Add(time.Duration(rnd.Int64N(int64(20 * time.Millisecond))))
		}
		r := Request{Client: fmt.Sprint("c", rnd.IntN(16)), Cost: 1 + rnd.Int64N(4)}
		if rnd.IntN(4) == 0 {
			r.ID = fmt.Sprint("id", rnd.IntN(9))
		}
		for range rnd.IntN(3) {
			l.Preview(now, Request{Client: fmt.Sprint("other", rnd.IntN(5)), Cost: 1 + rnd.Int64N(50)})
		}
		said, _ := l.Preview(now, r)
		d, receipt := l.Take(now, r)
		without, other := plain.Take(now, r)
		if said != d || d != without {
			t.Fatalf("seed %d, request %d: the preview is %+v, the decision %+v, and without previews %+v", seed, n, said, d, without)
		}
		if d.Verdict == headgate.Allow && rnd.IntN(5) == 0 {
			l.Return(receipt)
			plain.Return(other)
		}
	}
}
