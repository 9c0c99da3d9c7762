package breaker_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/internal/store/breaker"
)

// TestRefusesLooksAlone: Refuses gives the result of Allow, and begins no probe.
func TestRefusesLooksAlone(t *testing.T) {
	b := breaker.New(breaker.Config{Failures: 1, Probe: 10 * time.Second, MaxProbe: 10 * time.Second})
	if b.Refuses(0) {
		t.Error("a closed breaker refuses")
	}
	b.Failed(1*time.Second, 2*time.Second)
	for _, row := range []struct {
		now  time.Duration
		want bool
	}{{3 * time.Second, true}, {12*time.Second - 1, true}, {12 * time.Second, false}, {13 * time.Second, false}} {
		if got := b.Refuses(row.now); got != row.want {
			t.Errorf("at %v: refuses %v, want %v", row.now, got, row.want)
		}
	}
	if got := b.State(); got != breaker.Open {
		t.Errorf("to look made it %v", got)
	}
	if got := b.Stats().Refused; got != 2 {
		t.Errorf("%d refusals are counted, want 2", got)
	}
	if !b.Allow(13*time.Second) || !b.Refuses(14*time.Second) {
		t.Error("a probe was due, and another is not while it is in flight")
	}
	b.Succeeded(13*time.Second, 14*time.Second)
	if b.Refuses(15 * time.Second) {
		t.Error("it is closed, and refuses")
	}
}
