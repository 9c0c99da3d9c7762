package pacing

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/pace"
)

// leastUsed is the minimum used fraction of the limit under constant demand. With spread
// permits, a delayed machine loses permits that open just before the end of a window. There
// are no delays in virtual time.
const (
	leastUsed         = 0.995
	leastUsedWhenLate = 0.9
)

// TestLimit checks that 96 instances give at most the limit in each second, and use all of it.
func TestLimit(t *testing.T) {
	t.Parallel()
	const seconds = 4
	all := []settings{
		{limit: 10},
		{limit: 95},
		{limit: 1_000},
		{limit: tenthIfRaced(50_000)},
		{limit: 1_000, smoothing: pace.EvenSpread},
		{limit: 1_000, smoothing: pace.PID},
	}
	var fleets []*fleet
	for _, o := range all {
		o.instances = instances
		f := start(t, o)
		f.saturate()
		fleets = append(fleets, f)
	}
	runUntilUsed(t, seconds, fleets...)
	for _, f := range fleets {
		f.judge(t, leastInRealTime(f))
	}
}

// leastInRealTime returns the minimum used fraction of the limit on a machine with some delays.
func leastInRealTime(f *fleet) float64 {
	if f.smoothing == pace.Off {
		return leastUsed
	}
	return leastUsedWhenLate
}

// TestLimitInVirtualTime is TestLimit with all smoothings, and with rates that are too high
// for one machine in real time.
func TestLimitInVirtualTime(t *testing.T) {
	spreads := []pace.Smoothing{pace.Off, pace.EvenSpread, pace.PID}
	for _, c := range []struct {
		limit, seconds int64
		spreads        []pace.Smoothing
	}{
		{10, 20, spreads},
		{95, 10, spreads},
		{1_000, 3, spreads},
		{tenthIfRaced(50_000), 2, spreads},
		{tenthIfRaced(300_000), 2, spreads},
		{tenthIfRaced(2_000_000), 2, spreads[:1]},
	} {
		for _, smoothing := range c.spreads {
			t.Run(fmt.Sprint(c.limit, " ", smoothing), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					sleepUntil(time.Now().Add(870 * time.Millisecond)) // Fleets start in the middle of a second.
					f := start(t, settings{limit: c.limit, instances: instances, smoothing: smoothing})
					f.saturate()
					run(t, c.seconds, f)
					f.judge(t, leastUsed)
				})
			})
		}
	}
}

// tenthIfRaced reduces a large limit under the race detector, which makes the test ten times as slow.
func tenthIfRaced(limit int64) int64 {
	if race.On {
		return limit / 10
	}
	return limit
}
