package pacing

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/pace"
)

// leastUsed is how much of the limit must be used when more is always wanted. Of permits that
// open one after the other those are lost that open just before the end of a window,
// when the machine is late by then: in virtual time it never is.
const (
	leastUsed         = 0.995
	leastUsedWhenLate = 0.9
)

// TestLimit: at no limit do 96 instances give more in a second than it, and they give it
// all.
func TestLimit(t *testing.T) {
	t.Parallel()
	const seconds = 4
	orders := []order{
		{limit: 10},
		{limit: 95},
		{limit: 1_000},
		{limit: 50_000},
		{limit: 1_000, smoothing: pace.EvenSpread},
		{limit: 1_000, smoothing: pace.PID},
	}
	var fleets []*fleet
	for _, o := range orders {
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

// leastInRealTime is how much of the limit a fleet must use on a machine that is late now and then.
func leastInRealTime(f *fleet) float64 {
	if f.smoothing == pace.Off {
		return leastUsed
	}
	return leastUsedWhenLate
}

// TestLimitInVirtualTime: the same at rates that this machine is too small for, and
// however the permits are spread.
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
					f := start(t, order{limit: c.limit, instances: instances, smoothing: smoothing})
					f.saturate()
					run(t, c.seconds, f)
					f.judge(t, leastUsed)
				})
			})
		}
	}
}

// tenthIfRaced makes a large limit smaller where the race detector makes all ten times as slow.
func tenthIfRaced(limit int64) int64 {
	if race.On {
		return limit / 10
	}
	return limit
}
