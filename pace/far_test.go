package pace_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/pace"
)

// TestFarTimes: times that do not fit into nanoseconds since 1970 are later or earlier than all
// others, and do not overflow.
func TestFarTimes(t *testing.T) {
	far, long := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC)
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{})
		to.Assign(pace.Assignment{Plan: even(t, 10, time.Second, 1, 0), Revision: 1, Settled: long})
		to.ValidUntil(far)
		if !p.TryAcquire() {
			t.Error("what is valid until 9999 is not")
		}
		to.ValidUntil(long)
		if p.TryAcquire() {
			t.Error("what was valid until 1000 still is")
		}
		to.ValidUntil(time.Time{})
		p.Brake(pace.Brake{Until: long})
		if !p.TryAcquire() {
			t.Error("a brake until 1000 holds")
		}
		for range 3 {
			p.Brake(pace.Brake{Until: far})
		}
		if p.TryAcquire() || p.Stats().Brakes != 1 {
			t.Errorf("of a brake until 9999: %d brakes", p.Stats().Brakes)
		}
		if err := p.Acquire(t.Context(), time.Hour); err == nil {
			t.Error("somebody was served before 9999")
		}
	})
}
