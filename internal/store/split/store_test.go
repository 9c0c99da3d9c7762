package split_test

import (
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/store/split"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// inMemory makes a store in memory as one of the two stores.
func inMemory(tb testing.TB, clock func() headgate.Instant) prefetch.Source {
	tb.Helper()
	own, err := memory.New(memory.Config{MaxMemory: 8 << 20, Clock: clock})
	if err != nil {
		tb.Fatal(err)
	}
	return prefetch.ByTake(own)
}

func newSplit(tb testing.TB, main, perSecond prefetch.Source, clock func() headgate.Instant) *split.Store {
	tb.Helper()
	s, err := split.New(split.Config{Main: main, PerSecond: perSecond, Clock: clock})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// TestStore runs the contract on two stores in memory. The traces of the suite have groups with
// limits in both, and compare each decision with slow twins.
func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock) headgate.Store {
		t.Helper()
		return newSplit(t, inMemory(t, clock.Now), inMemory(t, clock.Now), clock.Now)
	}, storetest.Apart())
}

// TestFullOfLimits: a store is full of limits of a year. A reload still works, and the store is
// empty when the limits have expired.
func TestFullOfLimits(t *testing.T) {
	if race.On {
		return // It has one goroutine, and as many limits as a store takes.
	}
	storetest.Fill(t, func(t *testing.T, clock *storetest.Clock) headgate.Store {
		t.Helper()
		return newSplit(t, inMemory(t, clock.Now), inMemory(t, clock.Now), clock.Now)
	})
}

func TestNew(t *testing.T) {
	if _, err := split.New(split.Config{Main: inMemory(t, nil)}); err == nil {
		t.Error("New takes one store alone")
	}
	var none *split.Store
	if _, err := none.Prepare(headgate.Policy{}); err == nil {
		t.Error("Prepare of a Store that New did not make gives no error")
	}
	none.Release(1)
	if none.Unwrap() != nil {
		t.Error("a Store that New did not make has a store behind")
	}
}
