package tally_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/replay/tally"
)

const second = headgate.Instant(time.Second)

// TestPeakIsTheMostInAnyWindow compares peaks with a count of all requests in each window. A peak of many different times may be too high
// by the requests of a 128th of the window.
func TestPeakIsTheMostInAnyWindow(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		requests int
		over     time.Duration
	}{{100, time.Minute}, {200, time.Second}, {2000, time.Minute}, {5000, 20 * time.Second}} {
		const per = 10 * time.Second
		keys := tally.NewKeys(0)
		key := keys.Find(0, []byte("a"), 1)
		times := make([]headgate.Instant, 0, c.requests)
		at := second
		for range c.requests {
			at = at.Add(time.Duration(random.Int64N(2 * int64(c.over) / int64(c.requests))))
			times = append(times, at)
			keys.Rise(key, 0, at, per, 1)
		}
		most := func(window time.Duration) (most int64) {
			for i, from := 0, 0; i < len(times); i++ {
				for times[from] <= times[i].Add(-window) {
					from++
				}
				most = max(most, int64(i-from+1))
			}
			return most
		}
		exact, atMost := most(per), most(per+per/128)
		if c.requests <= 256 {
			atMost = exact
		}
		if got := key.Peak(0); got < exact || got > atMost {
			t.Errorf("%d requests: the peak is %d, want %d to %d", c.requests, got, exact, atMost)
		}
	}
}

// TestKeysStayWithinTheirMemory: of many keys a fair sample remains, with all requests of each key of the sample.
func TestKeysStayWithinTheirMemory(t *testing.T) {
	t.Parallel()
	const all, each = 100_000, 3
	keys := tally.NewKeys(1 << 20)
	var text [8]byte
	for round := range each {
		for i := range uint64(all) {
			binary.BigEndian.PutUint64(text[:], i)
			if key := keys.Find(7, text[:], 1); key != nil {
				key.Requests++
				keys.Rise(key, 0, second*headgate.Instant(round+1), time.Second, 1)
			}
		}
	}
	sample := keys.Of(7)
	if n := int64(len(sample)) * keys.Sample(); keys.Sample() < 16 || n < all*9/10 || n > all*11/10 {
		t.Errorf("%d keys are one in %d, an estimate of %d", len(sample), keys.Sample(), n)
	}
	for _, key := range sample {
		if key.Requests != each || key.Peak(0) != 1 {
			t.Fatalf("a key of the sample has %d requests and the peak %d", key.Requests, key.Peak(0))
		}
	}
}

// TestTimeline: steps grow with the time, and no request is lost.
func TestTimeline(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, pause := range []time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		var l tally.Timeline
		at, refused := 1_700_000_000*second, int64(0)
		for range 10_000 {
			at = at.Add(time.Duration(random.Int64N(int64(pause))))
			no := random.IntN(3) == 0
			if no {
				refused++
			}
			l.Add(at, no)
		}
		steps, start, step := l.Steps()
		sum := tally.Step{}
		for _, s := range steps {
			sum.Requests += s.Requests
			sum.Refused += s.Refused
		}
		if len(steps) > 240 || sum != (tally.Step{Requests: 10_000, Refused: refused}) || start.Add(time.Duration(len(steps)-1)*step) > at {
			t.Errorf("pauses of %s: %d steps of %s have %+v", pause, len(steps), step, sum)
		}
	}
}
