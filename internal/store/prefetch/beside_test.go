package prefetch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
)

// TestReleaseBesideAFlight: a caller waits for a flight, and another policy of that flight is
// released. The caller's own policy is in use, so its request is decided.
func TestReleaseBesideAFlight(t *testing.T) { synctest.Test(t, releaseBesideAFlight) }

func releaseBesideAFlight(t *testing.T) {
	t.Helper()
	src := newSource(t, nil)
	gate, arrived := make(chan struct{}), make(chan struct{}, 10)
	src.way = func(context.Context) error {
		arrived <- struct{}{}
		<-gate
		return nil
	}
	s := behind(t, src, prefetch.Config{})
	prepare := func(n int64) headgate.PolicyID {
		id, err := s.Prepare(headgate.Policy{
			Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: n, Per: time.Hour}, Hold: time.Minute, Batch: 10,
		})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	a, b := prepare(1000), prepare(2000)
	ctx, cancel := context.WithCancel(t.Context())
	one, two := make(chan error, 1), make(chan error, 1)
	go func() {
		one <- s.Apply(ctx, []headgate.Op{{Key: "ka", Policy: a, Cost: 1}, {Key: "kb", Policy: b, Cost: 1}}, make([]headgate.Decision, 2))
	}()
	<-arrived
	go func() {
		two <- s.Apply(t.Context(), []headgate.Op{{Key: "ka", Policy: a, Cost: 1}}, make([]headgate.Decision, 1))
	}()
	synctest.Wait()
	cancel()
	<-one
	s.Release(b)
	close(gate)
	if err := <-two; err != nil {
		t.Errorf("a has a user, and its caller gets: %v", err)
	}
}
