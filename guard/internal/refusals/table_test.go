package refusals_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/internal/refusals"
)

const minute = time.Minute

// TestStory follows one counter.
func TestStory(t *testing.T) {
	table := refusals.New(1 << 20)
	at := func(now time.Duration, want string) refusals.Place {
		t.Helper()
		place, r, found := table.Find("k", minute, now)
		if got := fmt.Sprintf("%t %d %v", found, r.Count, r.Left); got != want {
			t.Errorf("at %v: got %s, want %s", now, got, want)
		}
		return place
	}
	end := headgate.Instant(1_000 * time.Second)
	first := at(0, "false 0 0s")
	first.Learn(refusals.Refusal{Count: 6, End: end, Left: 50 * time.Second}, 0)
	at(0, "true 6 50s")
	at(20*time.Second, "true 6 30s")
	at(50*time.Second, "false 0 0s") // The window has ended.
	at(-time.Minute, "false 0 0s")   // The clock has stepped back: this is more than a period.
	at(-5*time.Second, "true 6 55s") // A small step only waits longer.
	if _, _, found := table.Find("k", time.Hour, 0); found {
		t.Error("the window of another period is found")
	}
	if _, _, found := table.Find("l", minute, 0); found {
		t.Error("another key is found")
	}
	first.Learn(refusals.Refusal{Count: 3, End: end, Left: 50 * time.Second}, 0)
	late := at(time.Second, "true 6 49s") // A smaller bound of the same window adds nothing.
	late.Learn(refusals.Refusal{Count: 2, End: end.Add(minute), Left: minute}, 50*time.Second)
	at(60*time.Second, "true 2 50s") // The next window begins anew.
	table.Lift("k", minute)
	at(60*time.Second, "false 0 0s")
	late.Learn(refusals.Refusal{Count: 9, End: end.Add(minute), Left: minute}, 50*time.Second)
	at(60*time.Second, "false 0 0s") // The decision could come from before the units were given back.
	refusals.Place{}.Learn(refusals.Refusal{Count: 1, Left: minute}, 0)
	table.Asked(2, 1)
	if got, want := table.Stats(), (refusals.Stats{Found: 2, Missed: 1, Overwritten: 2, Bytes: 4369 * 240}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := (*refusals.Table)(nil).Stats(); got != (refusals.Stats{}) {
		t.Errorf("no table has %+v", got)
	}
}

// TestFull fills a table of one set: the counter whose window ends first makes room.
func TestFull(t *testing.T) {
	table := refusals.New(1)
	learn := func(key string, left, now time.Duration) {
		place, _, _ := table.Find(key, minute, now)
		place.Learn(refusals.Refusal{Count: 1, End: headgate.Instant(now + left), Left: left}, now)
	}
	known := func(key string, now time.Duration) bool {
		_, _, found := table.Find(key, minute, now)
		return found
	}
	for i := range 7 {
		learn(fmt.Sprint(i), time.Duration(50-i)*time.Second, 0)
	}
	learn("seventh", 30*time.Second, 0)
	for i := range 7 {
		if got, want := known(fmt.Sprint(i), 0), i < 6; got != want {
			t.Errorf("counter %d is known: %t, want %t", i, got, want)
		}
	}
	if !known("seventh", 0) {
		t.Error("the last counter is not known")
	}
	learn("next", minute, 40*time.Second)
	if got := table.Stats(); got.Replaced != 1 || got.Expired != 1 || got.Entries != 7 || got.Bytes != 240 {
		t.Errorf("got %+v, want one counter replaced, one expired, and seven entries", got)
	}
}

// TestAgainstAMap runs random calls on a table and on a map without a bound. What the table knows, the
// map knows; and while nothing was replaced, the reverse.
func TestAgainstAMap(t *testing.T) {
	type counter struct {
		key string
		per time.Duration
	}
	type known struct {
		refusals.Refusal

		until time.Duration
	}
	r := rand.New(rand.NewPCG(1, 2))
	table, model := refusals.New(8<<10), map[counter]known{}
	now := time.Duration(0)
	for step := range 200_000 {
		now += time.Duration(r.IntN(20)) * time.Millisecond
		c := counter{fmt.Sprint(r.IntN(200)), []time.Duration{time.Second, minute}[r.IntN(2)]}
		place, got, found := table.Find(c.key, c.per, now)
		want, exists := model[c]
		exists = exists && want.until > now
		if found && (!exists || got != refusals.Refusal{Count: want.Count, End: want.End, Left: want.until - now}) {
			t.Fatalf("step %d: %v is known as %+v, want %+v (%t)", step, c, got, want, exists)
		}
		if exists && !found && table.Stats().Replaced == 0 {
			t.Fatalf("step %d: %v is not known, and nothing was replaced", step, c)
		}
		switch r.IntN(10) {
		case 0:
			table.Lift(c.key, c.per)
			delete(model, c)
		case 1, 2, 3:
			end := headgate.Instant(now - now%c.per + c.per)
			said := refusals.Refusal{Count: r.Int64N(9), End: end, Left: end.Sub(headgate.Instant(now))}
			place.Learn(said, now)
			if found && got.End == end { // A replaced counter has lost its bound.
				said.Count = max(said.Count, got.Count)
			}
			model[c] = known{said, now + said.Left}
		}
	}
	if s := table.Stats(); s.Replaced == 0 || s.Expired == 0 {
		t.Errorf("%+v: the test replaced no counters", s)
	}
}

// TestConcurrent finds, learns and lifts at once. A count belongs to its end: a reader never sees parts
// of two counters.
func TestConcurrent(t *testing.T) {
	table := refusals.New(1)
	var running sync.WaitGroup
	for worker := range 4 {
		running.Go(func() {
			for i := range 20_000 {
				n := int64((i*4+worker)%12 + 1)
				place, r, found := table.Find(fmt.Sprint(n), minute, 0)
				if found && (r.Count != n || r.End != headgate.Instant(n) || r.Left != time.Duration(n)) {
					t.Errorf("counter %d: got %+v", n, r)
					return
				}
				place.Learn(refusals.Refusal{Count: n, End: headgate.Instant(n), Left: time.Duration(n)}, 0)
				if i%16 == 0 {
					table.Lift(fmt.Sprint(n), minute)
				}
			}
		})
	}
	running.Wait()
	if got := table.Stats().Entries; got < 0 || got > 7 {
		t.Errorf("%d entries, want at most 7", got)
	}
}

// TestAllocatesNothing covers all calls.
func TestAllocatesNothing(t *testing.T) {
	table := refusals.New(1 << 10)
	if got := testing.AllocsPerRun(1000, func() {
		place, _, _ := table.Find("k", minute, 0)
		place.Learn(refusals.Refusal{Count: 1, End: 1, Left: 1}, 0)
		table.Lift("k", minute)
	}); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

// BenchmarkFind looks for a known counter, from all processors.
func BenchmarkFind(b *testing.B) {
	table := refusals.New(1 << 20)
	place, _, _ := table.Find("a key of usual length", minute, 0)
	place.Learn(refusals.Refusal{Count: 1, End: 1, Left: time.Second}, 0)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, _, found := table.Find("a key of usual length", minute, 0); !found {
				b.Fatal("not found")
			}
		}
	})
}

func ExampleTable() {
	table := refusals.New(1 << 20)
	// The store has refused a request: 6 units are counted, and the minute ends in 20 s.
	place, _, _ := table.Find("client 7", time.Minute, 0)
	place.Learn(refusals.Refusal{Count: 6, End: headgate.Instant(time.Minute), Left: 20 * time.Second}, 0)
	for _, now := range []time.Duration{5 * time.Second, 20 * time.Second} {
		_, r, found := table.Find("client 7", time.Minute, now)
		fmt.Println(found, r.Count, r.Left)
	}
	// Output:
	// true 6 15s
	// false 0 0s
}
