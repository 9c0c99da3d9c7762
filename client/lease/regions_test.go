//go:build !race

package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/client/internal/leases"
	"github.com/headgate/headgate/internal/lease/state"
)

// regions has three regions with three processes each, which share 1,000/s. A message needs 100 ms from a region to the servers, but for
// the first region. The demand of 1,500/s moves from the second region to the third one, and half of it on to the first one.
func regions(tb testing.TB, seed uint64, away time.Duration) {
	tb.Helper()
	const capacity, busy, quiet = 1000, 500, 5
	g := leases.New(tb, state.Config{
		Resources: []state.Resource{{Match: "mail", Capacity: 1000 * capacity, Algorithm: state.MaxMin, Safe: -1}},
		Lease:     15 * time.Second, Refresh: 5 * time.Second,
	})
	g.Start("a")
	var all [3][]*process
	for region := range all {
		for i := range 3 {
			dial := g.Dial
			if region > 0 {
				dial = leases.Far(away, g.Dial)
			}
			all[region] = append(all[region], start(tb, dial, seed*1000+uint64(10*region+i), quiet))
		}
	}
	set := func(region, n int, rate float64) {
		for _, p := range all[region][:n] {
			p.set(rate)
		}
	}
	begin := time.Now()
	time.Sleep(15 * time.Second) //nolint:forbidigo // In a bubble of synctest.
	set(1, 3, busy)
	follow(tb, "the second region becomes busy", all[1], capacity-6*quiet)
	set(1, 3, quiet)
	set(2, 3, busy)
	follow(tb, "the third region in place of the second one", all[2], capacity-6*quiet)
	set(0, 1, 3*busy)
	set(2, 3, quiet)
	set(2, 1, 3*busy)
	follow(tb, "the first region beside the third one", all[0][:1], (capacity-7*quiet)/2.)
	set(2, 1, quiet)
	follow(tb, "the first region alone", all[0][:1], capacity-8*quiet)
	end := time.Now()
	var whole []*process
	for _, region := range all {
		for _, p := range region {
			p.end()
			whole = append(whole, p)
		}
	}
	g.Close()
	if worst, most := worstSecond(whole, begin, end), capacity*11/10+len(whole); worst > most {
		tb.Errorf("%d calls in a second, want at most %d", worst, most)
	} else {
		tb.Logf("%d calls in the worst second", worst)
	}
}

// follow lets 12 s pass after a shift. From the third second on, busy processes have their fair part of the capacity.
func follow(tb testing.TB, what string, busy []*process, fair float64) {
	tb.Helper()
	shift := time.Now()
	time.Sleep(12 * time.Second) //nolint:forbidigo // In a bubble of synctest.
	late := 0
	for second := range 10 {
		calls := 0
		for _, p := range busy {
			from := shift.Add(time.Duration(second) * time.Second)
			c, _ := p.between(from, from.Add(time.Second))
			calls += c
		}
		tb.Logf("%s: %d calls in second %d, %.0f are fair", what, calls, second+1, fair)
		if second < 2 {
			continue
		}
		late += calls
		if float64(calls) < 0.9*fair {
			tb.Errorf("%s: %d calls in second %d, want at least 90 %% of %.0f from the third on", what, calls, second+1, fair)
		}
	}
	if used := float64(late) / 8 / fair; used < 0.94 {
		tb.Errorf("%s: %.1f %% of the fair part is used from the third second on, want at least 94 %%", what, 100*used)
	}
}

// TestRegions: the parts of three regions follow the demand within 2 s, and the provider never sees more than the bound.
func TestRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { regions(t, 1, 100*time.Millisecond) })
}
