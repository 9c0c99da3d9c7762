package prefetch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/testkit/race"
)

// TestColdKeysGoStraight: the source decides every request of a key with up to three requests
// a hold. There is no flight, no eviction of another key's place, and no allocation.
func TestColdKeysGoStraight(t *testing.T) {
	d := newDesk(t, prefetch.Config{MaxKeys: 7})
	p := held
	p.Algorithm, p.Batch, p.Limit.Count = headgate.FixedWindow, 0, 100_000
	id := prepare(t, d, p)
	keys := make([]string, 20)
	for i := range keys {
		keys[i] = fmt.Sprint("key ", i)
	}
	i := 0
	var got headgate.Decision
	ask := func() {
		op := headgate.Op{Key: keys[i%len(keys)], Policy: id, Cost: 1}
		if err := d.Take(t.Context(), &op, &got); err != nil || got.Verdict != headgate.Allow || got.Limit != 100_000 {
			t.Fatalf("%+v, %v", got, err)
		}
		i++
		d.clock.advance(3 * time.Millisecond) // Each key sends a request every 60 ms. The hold is 100 ms.
	}
	allocs := testing.AllocsPerRun(400, ask)
	if allocs >= 1 && !race.On {
		t.Errorf("%v allocations a request", allocs)
	}
	if st := d.Stats(); st.Asked != uint64(i) || st.Flights != 0 || d.source.calls.Load() != int64(i) {
		t.Errorf("%d requests: %+v, %d calls", i, st, d.source.calls.Load())
	}
}

// TestColdRefusalIsRepeated: a refusal of a cold key is repeated without the source.
func TestColdRefusalIsRepeated(t *testing.T) {
	d := newDesk(t, prefetch.Config{})
	p := held
	p.Batch, p.Limit.Count = 0, 8
	id := prepare(t, d, p)
	for range 40 {
		d.ask(headgate.Op{Key: "k", Policy: id, Cost: 1})
		d.clock.advance(70 * time.Millisecond)
	}
	if denied := d.Stats().Denied; denied < 10 {
		t.Errorf("%d of 40 requests were refused here", denied)
	}
}
