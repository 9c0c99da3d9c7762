package scenes

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
	"github.com/headgate/headgate/pace"
)

// paceGoroutines is the number of goroutines that wait for permits at the same time.
const paceGoroutines = 1024

// paceWait measures the cost of permits when every caller must wait.
func paceWait() (*contest.Contest, error) {
	c := &contest.Contest{
		About: fmt.Sprintf("%d permits a second, fewer than are requested, so that all callers wait: %d goroutines, or %d callbacks; "+
			"Headgate's pacers spread permits evenly, and their permits without a wait count as given up; "+
			"%.1f ns of processor time per permit are 1 %% of a core",
			paceRate, paceGoroutines, limiters.Callbacks, 1e7/paceRate),
		Workers: 1,
		Least:   512 * contest.Batch, // A slice takes at least some hundredths of a second.
		Questions: []contest.Question{
			{Of: limiters.PaceEven, Against: limiters.PaceCallbacks, Meter: cpu},
			{Of: limiters.PaceEven, Against: limiters.XTimeWait, Meter: cpu},
			{Of: limiters.PaceEven, Against: limiters.UberTake, Meter: cpu},
		},
	}
	callbacks := limiters.Pacers(limiters.PaceCallbacks)
	blocking := limiters.Pacers(limiters.PaceEven, limiters.XTimeWait, limiters.UberTake)
	err := addPacers(c, callbacks, paceRate, func(p limiters.Pacing, n int) contest.Tally { return waited(p, n, p.Take) })
	if err == nil {
		err = addPacers(c, blocking, paceRate, func(p limiters.Pacing, n int) contest.Tally {
			return waited(p, n, func(n int) contest.Tally { return together(p, n) })
		})
	}
	for i := range c.Sides {
		c.Sides[i].MayFail = c.Sides[i].Kind == contest.Ours
	}
	meterCPU(c)
	return c, err
}

// waited drains the pacer and then requests n permits. Headgate's pacers report how many
// callers waited; a permit without a wait counts as failed. On a delayed machine, some
// permits are available immediately.
func waited(p limiters.Pacing, n int, run func(int) contest.Tally) contest.Tally {
	p.Drain()
	ours, countsWaits := p.(interface{ Stats() pace.Stats })
	if !countsWaits {
		return run(n)
	}
	before := ours.Stats().Waited
	t := run(n)
	atOnce := t.Allowed - int(ours.Stats().Waited-before)
	t.Allowed, t.Failed = t.Allowed-atOnce, t.Failed+atOnce
	return t
}

// together requests n permits from many goroutines, one permit at a time.
func together(l limiters.Lone, n int) (t contest.Tally) {
	var requested atomic.Int64
	var mu sync.Mutex
	var all sync.WaitGroup
	for range paceGoroutines {
		all.Go(func() {
			var own contest.Tally
			for requested.Add(1) <= int64(n) {
				own = own.Add(l.Take(1))
			}
			mu.Lock()
			defer mu.Unlock()
			t = t.Add(own)
		})
	}
	all.Wait()
	return t
}
