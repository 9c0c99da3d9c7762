//go:build soak

package pacing

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate/pace"
)

// These need a machine that does nothing else: how late it is counts.

// TestSoakLimit is TestLimit for longer and one fleet at a time, however permits are
// spread: at 50,000 a second 96 pacers that spread wake 50,000 times a second.
func TestSoakLimit(t *testing.T) {
	const seconds = 10
	for _, smoothing := range []pace.Smoothing{pace.Off, pace.EvenSpread, pace.PID} {
		for _, limit := range []int64{10, 95, 1_000, 50_000} {
			t.Run(fmt.Sprint(limit, " ", smoothing), func(t *testing.T) {
				f := start(t, order{limit: limit, instances: instances, smoothing: smoothing})
				f.saturate()
				run(t, seconds, f)
				f.judge(t, leastUsed)
			})
		}
	}
}

// TestSoakWrongClocks is TestWrongClocksInRealTime for longer and one fleet at a time, from
// when demand begins on.
func TestSoakWrongClocks(t *testing.T) {
	const seconds = 5
	for _, smoothing := range []pace.Smoothing{pace.Off, pace.EvenSpread, pace.PID} {
		for _, limit := range []int64{10, 95, 1_000, 50_000} {
			t.Run(fmt.Sprint(limit, " ", smoothing), func(t *testing.T) {
				f := start(t, order{
					limit: limit, instances: instances, smoothing: smoothing, keep: true,
					ahead: anyhow(uint64(limit)), late: 50 * time.Millisecond,
				})
				sleepUntil(time.Now().Truncate(time.Second).Add(2 * time.Second))
				f.saturate()
				run(t, seconds, f)
				n := f.judgeIntervals(t)
				t.Logf("at most %.4f of the limit in a second", float64(n)/float64(limit))
				f.judge(t, leastUsedWhenLate)
			})
		}
	}
}

// TestSoakSmoothing is TestSmoothing and TestSmoothingIsFree by the machine's clock.
func TestSoakSmoothing(t *testing.T) {
	const seconds = 10
	for _, smoothing := range []pace.Smoothing{pace.EvenSpread, pace.PID} {
		t.Run(smoothing.String(), func(t *testing.T) {
			d := ask(t, smoothing, seconds, 1, 3*smoothLimit)
			d.judge(t, leastSmoothed)
			d.judgeVariation(t, seconds)
			ask(t, smoothing, seconds, smoothLimit/2, 1).judgeWaits(t, seconds*smoothLimit/2)
		})
	}
}
