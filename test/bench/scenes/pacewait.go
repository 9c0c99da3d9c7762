package scenes

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/test/bench/contest"
	"github.com/headgate/headgate/test/bench/limiters"
)

// paceGoroutines is how many wait at once, when each waits in a goroutine.
const paceGoroutines = 1024

// paceWait tells what permits cost that everybody waits for.
func paceWait() (*contest.Contest, error) {
	c := &contest.Contest{
		About: fmt.Sprintf("%d a second are there, and more are wanted, so that everybody waits: %d goroutines, or %d callbacks; "+
			"ours spread permits evenly, and those of ours that did not wait count as given up. "+
			"%.1f ns of processor time each are 1 %% of a core",
			paceRate, paceGoroutines, limiters.Callbacks, 1e7/paceRate),
		Workers: 1,
		Least:   512 * contest.Batch, // Some hundredths of a second's worth.
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

// waited lets n be asked for, with nothing there when they come. Those that have not
// waited, as ours tell, have failed: a machine that is late lets some through.
func waited(p limiters.Pacing, n int, run func(int) contest.Tally) contest.Tally {
	p.Drain()
	ours, told := p.(interface{ Stats() pace.Stats })
	if !told {
		return run(n)
	}
	before := ours.Stats().Waited
	t := run(n)
	atOnce := t.Allowed - int(ours.Stats().Waited-before)
	t.Allowed, t.Failed = t.Allowed-atOnce, t.Failed+atOnce
	return t
}

// together lets many goroutines ask for one at a time, n times in all.
func together(l limiters.Lone, n int) (t contest.Tally) {
	var asked atomic.Int64
	var mu sync.Mutex
	var all sync.WaitGroup
	for range paceGoroutines {
		all.Go(func() {
			var own contest.Tally
			for asked.Add(1) <= int64(n) {
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
