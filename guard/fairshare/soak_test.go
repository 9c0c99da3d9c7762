//go:build soak

package fairshare

import "testing"

// TestSoakOwners runs TestOwnersAreServed for a million requests of owners in each case, with
// tighter bounds.
func TestSoakOwners(t *testing.T) {
	for _, c := range []crowded{
		{"three owners, 400 of 500", 3, 400, 10_000, 500, 1010},
		{"199 owners, 8 of 10, flood of 200", 199, 8, 200, 10, 710},
		{"199 owners, 8 of 10, flood of 10,000", 199, 8, 10_000, 10, 710},
		{"three owners, 500 of 500", 3, 500, 10_000, 500, 810},
	} {
		for _, reclaim := range Reclaims() {
			clients := crew(c.owners, c.mean, c.flood)
			config := shared(Config{Capacity: 2000, Reclaim: reclaim}, clients)
			s := play(t, config, c.fair, c.cycles, clients...).summarize(10)
			t.Logf("%s, %v: %d of %d requests refused, %.4f of the capacity used, at most %d per cycle", c.name, reclaim, s.refused, s.within, s.used, s.most)
			if s.most > 2000 || reclaim == AtOnce && (s.refused*100_000 > s.within || s.used < 0.994) {
				t.Errorf("%s, %v: %+v", c.name, reclaim, s)
			}
		}
	}
}

// TestSoakComeback runs TestCapacityComesBack over 100 returns.
func TestSoakComeback(t *testing.T) {
	for _, reclaim := range Reclaims() {
		got := playComeback(t, reclaim, 100)
		t.Logf("%v: served %.4f in the first 100 ms, %.4f in the first cycle, %.4f in the second; others: %d of %d refused",
			reclaim, got.early, got.first, got.second, got.others.refused, got.others.within)
		if reclaim == AtOnce && (got.early < 0.9999 || got.first < 0.9999 || got.others.refused*10_000 > got.others.within) {
			t.Errorf("%+v", got)
		}
	}
}
