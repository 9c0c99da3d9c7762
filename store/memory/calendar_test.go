package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// months counts in months that begin on the 1st, or on another day.
type months struct {
	t     *testing.T
	clock *storetest.Clock
	store *memory.Store
	id    headgate.PolicyID
}

func newMonths(t *testing.T, places int64) *months {
	t.Helper()
	m := &months{t: t, clock: storetest.NewClock()}
	m.store = table(t, places, headgate.Deny, m.clock)
	m.id = prepare(t, m.store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10, Calendar: headgate.Month}})
	return m
}

func (m *months) take(key string, starts int, cost int64) headgate.Decision {
	m.t.Helper()
	settings := calendar.Default()
	settings.MonthStarts = starts
	e := settings.Edges(headgate.Month, m.clock.Now().Time())
	var d headgate.Decision
	if err := m.store.Take(&headgate.Op{Key: key, Policy: m.id, Cost: cost, Edges: &e}, &d); err != nil {
		m.t.Fatal(err)
	}
	return d
}

// TestCalendarPlaces: a key has one place, and without a change of the settings, one more for each of at most two counts
// that have ended.
func TestCalendarPlaces(t *testing.T) {
	m := newMonths(t, 1<<12)
	for month := range 24 {
		m.take("k", 1, 3)
		if used := m.store.Stats().Used; used > 3 || month == 0 && used != 1 {
			t.Errorf("month %d: %d places", month, used)
		}
		m.clock.Advance(31 * 24 * time.Hour)
	}
}

// TestEndedCountsEvictNothing: when the table is full of live counts, a count that ends takes no place
// of another key. New keys take the places of ended counts first.
func TestEndedCountsEvictNothing(t *testing.T) {
	const keys, more = 400, 800
	m := newMonths(t, 1<<11)
	m.clock.Advance(24 * 24 * time.Hour)
	for i := range keys {
		m.take(fmt.Sprint("k", i), 1, 4)
	}
	m.clock.Advance(10 * 24 * time.Hour)
	for i := range keys {
		m.take(fmt.Sprint("k", i), 1, 5)
	}
	before := m.store.Stats()
	if before.Used != 2*keys || before.Evicted > 0 {
		t.Fatalf("%+v: want %d used places", before, 2*keys)
	}
	ended := 0
	for i := range keys {
		if m.take(fmt.Sprint("k", i), 20, 0).Remaining == 1 {
			ended++
		}
	}
	if ended != keys {
		t.Errorf("%d of %d keys still have the count of their last month", ended, keys)
	}
	for i := range more {
		m.take(fmt.Sprint("more", i), 1, 1)
	}
	lost := 0
	for i := range keys {
		if m.take(fmt.Sprint("k", i), 1, 0).Remaining != 5 {
			lost++
		}
	}
	if evicted := m.store.Stats().Evicted; lost > keys/100 {
		t.Errorf("%d present counts of %d are lost, with %d evictions", lost, keys, evicted)
	}
	var present []string
	for i := range 4 << 11 {
		if key := fmt.Sprint("full", i); m.take(key, 1, 10).Verdict == headgate.Allow {
			present = append(present, key)
		}
	}
	was := m.store.Stats()
	m.clock.Advance(28 * 24 * time.Hour)
	for _, key := range present {
		m.take(key, 1, 1)
	}
	if is := m.store.Stats(); is.Evicted != was.Evicted || was.Used != was.Places || len(present) < 1000 {
		t.Errorf("%+v, then %+v: %d counts ended in a full table, and evicted other states", was, is, len(present))
	}
}

// TestCalendarAllocatesNothing: also when each request ends a count.
func TestCalendarAllocatesNothing(t *testing.T) {
	m := newMonths(t, 1<<12)
	edges := make([]headgate.Edges, 0, 400)
	for range cap(edges) {
		edges = append(edges, calendar.Default().Edges(headgate.Month, m.clock.Now().Time()))
		m.clock.Advance(edges[len(edges)-1][2].Sub(m.clock.Now()))
	}
	m.clock.Advance(edges[0][1].Sub(m.clock.Now()))
	next, d := 0, headgate.Decision{}
	if n := testing.AllocsPerRun(len(edges)-2, func() {
		e := &edges[next]
		_ = m.store.Take(&headgate.Op{Key: "k", Policy: m.id, Cost: 1, Edges: e}, &d)
		_ = m.store.Take(&headgate.Op{Key: "k", Policy: m.id, Cost: 1, Kind: headgate.Peek, Edges: e}, &d)
		_ = m.store.Take(&headgate.Op{Key: "k", Policy: m.id, Cost: 2, Kind: headgate.Refund, Edges: e}, &d)
		_ = m.store.Take(&headgate.Op{Key: "k", Policy: m.id, Cost: 1, Edges: e}, &d)
		m.clock.Advance(e[2].Sub(m.clock.Now()))
		next++
	}); n != 0 {
		t.Errorf("a take, a peek and a refund of a new month allocate %v times", n)
	}
}

// BenchmarkWindows measures a take in a window of a length and of a calendar, of 10,000 keys. In the third, each key has
// also the count of the last month.
func BenchmarkWindows(b *testing.B) {
	for _, name := range []string{"1h", "month", "month, after another"} {
		b.Run(name, func(b *testing.B) {
			clock := storetest.NewClock()
			s, p := table(b, 1<<17, headgate.Deny, clock), headgate.Policy{Algorithm: headgate.FixedWindow}
			if p.Limit = (headgate.Limit{Count: 1 << 40, Calendar: headgate.Month}); name == "1h" {
				p.Limit = headgate.Limit{Count: 1 << 40, Per: time.Hour}
			}
			id, keys, d := prepare(b, s, p), make([]string, 10_000), headgate.Decision{}
			e := calendar.Default().Edges(headgate.Month, clock.Now().Time())
			take := func(i int) {
				if err := s.Take(&headgate.Op{Key: keys[i%len(keys)], Policy: id, Cost: 1, Edges: &e}, &d); err != nil {
					b.Fatal(err)
				}
			}
			for i := range keys {
				keys[i] = fmt.Sprint(i)
				take(i)
			}
			if name == "month, after another" {
				clock.Advance(31 * 24 * time.Hour)
				e = calendar.Default().Edges(headgate.Month, clock.Now().Time())
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				take(i)
				i++
			}
		})
	}
}
