//go:build soak

package pacing

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate/pace"
)

// These tests need an otherwise idle machine, because the machine's delays count.

// TestSoakLimit is a longer TestLimit with all smoothings, and with one fleet at a time. At
// 50,000 a second, 96 pacers that spread permits wake 50,000 times a second.
func TestSoakLimit(t *testing.T) {
	const seconds = 10
	for _, smoothing := range []pace.Smoothing{pace.Off, pace.EvenSpread, pace.PID} {
		for _, limit := range []int64{10, 95, 1_000, 50_000} {
			t.Run(fmt.Sprint(limit, " ", smoothing), func(t *testing.T) {
				f := start(t, settings{limit: limit, instances: instances, smoothing: smoothing})
				f.saturate()
				run(t, seconds, f)
				f.judge(t, leastUsed)
			})
		}
	}
}

// TestSoakWrongClocks is a longer TestWrongClocksInRealTime, with one fleet at a time. It also
// counts the first second of the demand.
func TestSoakWrongClocks(t *testing.T) {
	const seconds = 5
	for _, smoothing := range []pace.Smoothing{pace.Off, pace.EvenSpread, pace.PID} {
		for _, limit := range []int64{10, 95, 1_000, 50_000} {
			t.Run(fmt.Sprint(limit, " ", smoothing), func(t *testing.T) {
				f := start(t, settings{
					limit: limit, instances: instances, smoothing: smoothing, keep: true,
					ahead: randomErrors(uint64(limit)), late: 50 * time.Millisecond,
				})
				sleepUntil(time.Now().Truncate(time.Second).Add(2 * time.Second))
				f.saturate()
				run(t, seconds, f)
				n := f.judgeIntervals(t)
				t.Logf("maximum in a second: %.4f of the limit", float64(n)/float64(limit))
				f.judge(t, leastUsedWhenLate)
			})
		}
	}
}

// TestSoakSmoothing is TestSmoothing and TestSmoothingIsFree in real time.
func TestSoakSmoothing(t *testing.T) {
	const seconds = 10
	for _, smoothing := range []pace.Smoothing{pace.EvenSpread, pace.PID} {
		t.Run(smoothing.String(), func(t *testing.T) {
			d := demandOf(t, smoothing, seconds, 1, 3*smoothLimit)
			d.judge(t, leastSmoothed)
			d.judgeVariation(t, seconds)
			demandOf(t, smoothing, seconds, smoothLimit/2, 1).judgeWaits(t, seconds*smoothLimit/2)
		})
	}
}
