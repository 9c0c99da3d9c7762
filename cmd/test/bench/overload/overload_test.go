package overload

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	sim "github.com/headgate/headgate/internal/sim/overload"
)

var designs = map[string]func(context.Context) sim.NewDesign{
	"limiter": NewLimiter, "by class": NewPriorityLimiter, "by class and tenant": NewUsageLimiter,
	"bulkhead": NewBulkhead,
}

// short returns the first seconds of a scenario.
func short(t *testing.T, name string) sim.Scenario {
	t.Helper()
	s, ok := sim.Named(name)
	if !ok {
		t.Fatalf("no scenario is named %q", name)
	}
	s.From, s.To = time.Second, 5*time.Second
	return s
}

// run simulates a scenario in a bubble.
func run(t *testing.T, s sim.Scenario, design func(context.Context) sim.NewDesign) sim.Figures {
	t.Helper()
	var f sim.Figures
	synctest.Test(t, func(t *testing.T) {
		var err error
		if f, err = sim.Run(s, 1, true, design(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return f
}

// TestUnloaded: below the capacity, each design serves all requests, like no limit at all.
func TestUnloaded(t *testing.T) {
	t.Parallel()
	s := short(t, "bimodal 0.5")
	open := run(t, s, func(context.Context) sim.NewDesign { return sim.NewOpen() })
	for name, design := range designs {
		if f := run(t, s, design); f.All < 0.999 || f != open {
			t.Errorf("%s: %+v, but %+v without a limit", name, f, open)
		}
	}
}

// TestOverloaded: each design refuses a part of the requests, and serves others in time.
func TestOverloaded(t *testing.T) {
	t.Parallel()
	s := short(t, "bimodal 2")
	for name, design := range designs {
		f := run(t, s, design)
		if f.All < 0.3 || f.All > 0.7 {
			t.Errorf("%s: %.3f of the requests succeed with twice the load", name, f.All)
		}
		if second := run(t, s, design); f != second {
			t.Errorf("%s: two runs differ: %+v and %+v", name, f, second)
		}
	}
}

// clocked compares the clock of the bubble with the time of the simulation after each event.
type clocked struct {
	sim.Design

	t      *testing.T
	begin  time.Time
	events int
}

func (c *clocked) check(now headgate.Instant) {
	c.events++
	if at := time.Since(c.begin); at != time.Duration(now) {
		c.t.Errorf("the clock of the bubble is at %v, but the simulation at %v", at, time.Duration(now))
	}
}

// Arrive implements Design.
func (c *clocked) Arrive(now headgate.Instant, a *sim.Attempt) {
	c.Design.Arrive(now, a)
	c.check(now)
}

// Ended implements Design.
func (c *clocked) Ended(now headgate.Instant, a *sim.Attempt, cpu time.Duration) {
	c.Design.Ended(now, a, cpu)
	c.check(now)
}

// Left implements Design.
func (c *clocked) Left(now headgate.Instant, a *sim.Attempt) {
	c.Design.Left(now, a)
	c.check(now)
}

// TestClock: the library sees the time of the simulation.
func TestClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &clocked{t: t, begin: time.Now()}
		_, err := sim.Run(short(t, "bimodal 2"), 1, true, func(e *sim.Engine) (sim.Design, error) {
			d, err := NewPriorityLimiter(t.Context())(e)
			c.Design = d
			return c, err
		})
		if err != nil || c.events < 1000 {
			t.Errorf("%d events, error %v", c.events, err)
		}
	})
}
