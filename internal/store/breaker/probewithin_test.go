package breaker_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/internal/store/breaker"
)

// TestProbeWithin: the next probe of an open breaker is due sooner, never later, and a closed breaker stays closed.
func TestProbeWithin(t *testing.T) {
	b := breaker.New(breaker.Config{Failures: 1, Probe: 8 * time.Second, MaxProbe: 8 * time.Second})
	b.ProbeWithin(0, time.Second)
	if !b.Allow(1) {
		t.Error("a closed breaker refuses")
	}
	b.Failed(1, 1)
	b.ProbeWithin(1, time.Hour)
	b.ProbeWithin(1, time.Second)
	b.ProbeWithin(1, 2*time.Second)
	if b.Allow(time.Second) {
		t.Error("a probe is allowed too early")
	}
	if !b.Allow(time.Second+1) || b.State() != breaker.HalfOpen {
		t.Error("no probe is allowed after the time")
	}
	b.ProbeWithin(time.Second+2, 0)
	if b.Allow(time.Second + 3) {
		t.Error("a second probe is allowed beside the first")
	}
}
