package overload

import (
	"testing"

	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/internal/throttle"
)

// rowNamed returns the scenario of a row.
func rowNamed(t *testing.T, row string) Scenario {
	t.Helper()
	for _, s := range Rows() {
		if s.Name == row {
			return s
		}
	}
	t.Fatalf("no row is named %q", row)
	return Scenario{}
}

func run(t *testing.T, s Scenario, seed uint64, design NewDesign) Figures {
	t.Helper()
	f, err := Run(s, seed, true, design)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestBars runs one seed of ten scenarios. `make soak` runs ten seeds of all (cmd/test/bench/overload).
func TestBars(t *testing.T) {
	t.Parallel()
	if race.On {
		return // A run has one goroutine.
	}
	for _, row := range []string{"bimodal 0.9", "bimodal 2", "bimodal 5", "hidden", "drop", "burst", "hang", "hang, slow bodies", "abuse", slowByCPU} {
		f := run(t, rowNamed(t, row), 1, NewThrottled(LimitOf(row)))
		misses, _ := Misses(row, f, 1)
		for _, miss := range misses {
			t.Errorf("%s: %s", row, miss)
		}
	}
}

// TestCollapse shows what the bars are worth: without a throttler, and with the usual queue, most
// of the work of an overloaded service is wasted. The bars must tell these designs apart.
func TestCollapse(t *testing.T) {
	t.Parallel()
	if race.On {
		return // A run has one goroutine.
	}
	s := rowNamed(t, "bimodal 2")
	for name, design := range map[string]NewDesign{"open": NewOpen(), "queue": NewQueue(16, 1000)} {
		f := run(t, s, 1, design)
		if misses, _ := Misses(s.Name, f, 1); f.Goodput > 0.6 || len(misses) == 0 {
			t.Errorf("%s: goodput is %.3f: the scenario overloads nothing", name, f.Goodput)
		}
	}
}

// TestEqualRuns: a run is a function of its arguments.
func TestEqualRuns(t *testing.T) {
	t.Parallel()
	if race.On {
		return // A run has one goroutine.
	}
	s := rowNamed(t, "drop")
	first := run(t, s, 7, NewThrottled(LimitOf("drop")))
	if second := run(t, s, 7, NewThrottled(LimitOf("drop"))); first != second {
		t.Errorf("two runs differ: %+v and %+v", first, second)
	}
	if other := run(t, s, 8, NewThrottled(LimitOf("drop"))); first == other {
		t.Error("another seed gives the same figures")
	}
	if _, err := Run(s, 1, true, NewThrottled(throttle.Config{})); err == nil {
		t.Error("a faulty configuration gives no error")
	}
}

// TestUnloaded checks the model itself: below the capacity all designs serve all requests, and
// the work that a service does is the load.
func TestUnloaded(t *testing.T) {
	t.Parallel()
	s := rowNamed(t, "bimodal 0.5")
	for name, design := range map[string]NewDesign{
		"open": NewOpen(), "queue": NewQueue(16, 1000), "last first": NewLastFirst(16, 1000),
		"by class": NewByClass(16, 1000), "fair": NewFair(16, 1000), "throttle": NewThrottled(LimitOf(s.Name)),
	} {
		f := run(t, s, 1, design)
		if f.All < 0.999 || f.Goodput < 0.45 || f.Goodput > 0.55 || f.Wasted > 0.01 {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
