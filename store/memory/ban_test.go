package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// gate is a rule of the overload article: 2,000 requests in 1,200 s. A client that exceeds
// the limit is banned until an hour after the end of the window.
type gate struct {
	t          *testing.T
	store      *memory.Store
	clock      *storetest.Clock
	limit, ban headgate.PolicyID
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{t: t, clock: storetest.NewClock()}
	g.store = table2(t, g.clock)
	l := headgate.Limit{Count: 2000, Per: 1200 * time.Second}
	g.limit = prepare(t, g.store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: l})
	g.ban = prepare(t, g.store, headgate.Policy{Algorithm: headgate.Ban, Limit: l, BanFor: 3600 * time.Second})
	return g
}

// attempt takes one unit, and gives the decisions of the limit and of the ban.
func (g *gate) attempt() (limited, banned headgate.Decision) {
	g.t.Helper()
	var ds [2]headgate.Decision
	if err := g.store.Apply(g.t.Context(), []headgate.Op{
		{Key: "caller", Policy: g.limit, Cost: 1}, {Key: "caller", Policy: g.ban, Window: 1, Cost: 1},
	}, ds[:]); err != nil {
		g.t.Fatal(err)
	}
	return ds[0], ds[1]
}

// TestBanOfTheArticle: the 2,001st attempt within 1,200 s is refused. All further attempts
// are refused until 3,600 s after the end of these 1,200 s.
func TestBanOfTheArticle(t *testing.T) {
	for _, first := range []time.Duration{0, 600 * time.Second} { // The attempts begin with the window, and in the middle of the window.
		t.Run(first.String(), func(t *testing.T) {
			g := newGate(t)
			g.clock.Advance(first)
			for i := range 2000 {
				if limited, banned := g.attempt(); limited.Verdict != headgate.Allow || banned.Verdict != headgate.Allow {
					t.Fatalf("attempt %d: %v, %v", i+1, limited.Reason, banned.Reason)
				}
				g.clock.Advance(500 * time.Millisecond)
			}
			const ends = 1200*time.Second + 3600*time.Second
			refused := 0
			for since := 1000 * time.Second; since < ends; since += 100 * time.Millisecond {
				_, banned := g.attempt()
				if banned.Reason != headgate.Banned || banned.RetryAfter != ends-since {
					t.Fatalf("%v after the first attempt: %v for %v", since, banned.Reason, banned.RetryAfter)
				}
				refused++
				g.clock.Advance(100 * time.Millisecond)
			}
			limited, banned := g.attempt()
			if refused != 38_000 || banned.Verdict != headgate.Allow || limited.Verdict != headgate.Allow {
				t.Errorf("after %d refusals: %v, %v", refused, limited.Reason, banned.Reason)
			}
			if limited.Remaining != 1999 || banned.Remaining != 1999 {
				t.Errorf("%d and %d remain: attempts of the ban were counted", limited.Remaining, banned.Remaining)
			}
		})
	}
}

// TestFloodEvictsNoBannedKey: new keys do not evict a banned key. After the ban, the key can
// be evicted like any other.
func TestFloodEvictsNoBannedKey(t *testing.T) {
	clock := storetest.NewClock()
	s := table(t, 2048, headgate.Deny, clock)
	id := prepare(t, s, headgate.Policy{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 2, Per: time.Minute}, BanFor: time.Hour})
	bucket := prepare(t, s, headgate.Policy{Limit: headgate.Limit{Count: 10, Per: 24 * time.Hour}})
	const victims = 64
	for i := range victims {
		if n := count(t, s, fmt.Sprint("victim ", i), id, 5); n != 2 {
			t.Fatalf("%d passed before the flood, want 2", n)
		}
	}
	flood := func(until time.Duration) {
		for i := range race.Fewer(20_000, 4_000) { // Some keys stay under the limit of the ban. The state of others lasts longer than the ban.
			count(t, s, fmt.Sprintf("flood %d %v", i, until), id, 1)
			count(t, s, fmt.Sprintf("flood %d %v of a bucket", i, until), bucket, 1)
		}
		for i := range victims {
			var d headgate.Decision
			if err := s.Take(&headgate.Op{Key: fmt.Sprint("victim ", i), Policy: id, Cost: 1}, &d); err != nil {
				t.Fatal(err)
			}
			if d.Reason != headgate.Banned || d.RetryAfter != until {
				t.Fatalf("victim %d after a flood: %v for %v, want a ban for %v", i, d.Reason, d.RetryAfter, until)
			}
		}
	}
	flood(61 * time.Minute)
	clock.Advance(30 * time.Second)
	flood(60*time.Minute + 30*time.Second)
	clock.Advance(60 * time.Minute)
	flood(30 * time.Second)
	if stats := s.Stats(); stats.Evicted == 0 || stats.Refused != 0 {
		t.Errorf("stats %+v: want evictions and no refusal", stats)
	}
	clock.Advance(30 * time.Second)
	for i := range victims {
		if n := count(t, s, fmt.Sprint("victim ", i), id, 1); n != 1 {
			t.Fatalf("victim %d is refused after its ban", i)
		}
	}
}

// TestForgetFreesBlocks: Forget frees the blocks of logs and sliding windows.
func TestForgetFreesBlocks(t *testing.T) {
	s := table2(t, storetest.NewClock())
	for _, p := range every(headgate.Limit{Count: 100, Per: time.Minute}) {
		id := prepare(t, s, p)
		var ops []headgate.Op
		for i := range 500 {
			ops = append(ops, headgate.Op{Key: fmt.Sprint(i), Window: uint8(p.Algorithm), Policy: id, Cost: 1, Group: uint8(i % 2)})
		}
		if err := s.Apply(t.Context(), ops, make([]headgate.Decision, len(ops))); err != nil {
			t.Fatal(err)
		}
		lent := s.Stats().BlockBytesLent
		if lent == 0 != (p.Algorithm != headgate.SlidingLog && p.Algorithm != headgate.SlidingWindow) {
			t.Errorf("%s: %d bytes are lent", p.Algorithm, lent)
		}
		if err := s.Forget(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
		if lent := s.Stats().BlockBytesLent; lent != 0 {
			t.Errorf("%s: %d bytes are lent after all is forgotten", p.Algorithm, lent)
		}
	}
	if stats := s.Stats(); stats.Evicted != 0 || stats.Refused != 0 {
		t.Errorf("stats %+v: want no eviction and no refusal", stats)
	}
}
