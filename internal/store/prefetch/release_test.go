package prefetch_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// released makes a store in front of a larger one in memory.
func released(t *testing.T, clock *storetest.Clock) headgate.Store {
	t.Helper()
	source, err := memory.New(memory.Config{MaxMemory: 16 << 20, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	since := func() time.Duration { return clock.Now().Sub(storetest.Start) }
	s, err := prefetch.New(prefetch.Config{Source: prefetch.ByTake(source), Clock: since})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestFullOfLimits: a store is full of limits of a year. A reload still works, and the store
// is empty when the limits have expired.
func TestFullOfLimits(t *testing.T) {
	if race.On {
		return // It has one goroutine, and as many limits as a store takes.
	}
	storetest.Fill(t, released)
}

// TestLimitsOfClients: clients name limits and drop them, in flat memory.
// TestSoakLimitsOfClients runs the full sizes.
func TestLimitsOfClients(t *testing.T) {
	storetest.Churn{Limits: race.Fewer(140_000, 14_000), Every: 86_400 * time.Microsecond, Per: time.Minute, Kept: 1000, Uses: 1}.Run(t, released)
}
