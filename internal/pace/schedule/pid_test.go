package schedule_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/internal/pace/schedule/simulation"
)

const (
	ms   = time.Millisecond
	slot = 10 * ms
	late = 3 * ms // maximum delay of a timer
)

func plan(t *testing.T, limit int64, per time.Duration, instances, index int) schedule.Plan {
	t.Helper()
	p, err := schedule.Even(limit, per, instances, index)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func evenly(schedule.Outcome) float64 { return 1 }

func pid() func(schedule.Outcome) float64 { return new(schedule.PID).Next }

// variation returns the largest coefficient of variation of the windows, over slots of 10 ms.
func variation(windows []simulation.Window, per time.Duration) (worst float64) {
	for _, w := range windows {
		worst = max(worst, simulation.Variation(w.Slots(per, slot)))
	}
	return worst
}

// TestPIDSmooths has a limit of 10,000 a second and low demand, so that PID learns the
// maximum speed. Then 30,000 callers arrive in each second. From the fourth second on,
// permits open evenly, and few are lost although timers are late.
func TestPIDSmooths(t *testing.T) {
	const before = 10
	for _, c := range []struct {
		name     string
		late     time.Duration
		patience time.Duration
		demand   simulation.Demand
		takes    int // windows until permits are even
	}{
		{"callers wait forever, timers on time", 0, 0, simulation.AtStart(30_000), 3},
		{"callers wait forever", late, 0, simulation.AtStart(30_000), 3},
		{"callers wait for a second", late, time.Second, simulation.AtStart(30_000), 3},
		{"callers arrive all the time and wait for 100 ms", late, 100 * ms, simulation.Evenly(30_000), 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			demand := simulation.InTurn(simulation.Phase{Windows: before, Demand: simulation.Evenly(1000)}, simulation.Phase{Demand: c.demand})
			s := simulation.Setup{Plan: plan(t, 10_000, time.Second, 1, 0), Windows: before + 12, Demand: demand, Patience: c.patience, Late: c.late}
			if cv := variation(s.Run()[before+1:], time.Second); c.patience == 0 && (cv < 9.5 || cv > 10) {
				t.Errorf("without smoothing, the variation is %.2f, want 9.5 to 10", cv)
			}
			s.Spread = pid()
			windows := s.Run()
			if got := windows[before].Spread; got > 1.0001/schedule.MaxSpeed {
				t.Errorf("after low demand, permits open in %.3f of a window, want 1/MaxSpeed", got)
			}
			for i, w := range windows[before:] {
				cv := simulation.Variation(w.Slots(time.Second, slot))
				if i < 6 {
					t.Logf("window %d: spread over %.3f, variation %.3f, used %d", i, w.Spread, cv, w.Used)
				}
				if i >= c.takes && cv > 0.2 || w.Used < 9_900 {
					t.Errorf("window %d: variation %.3f, used %d of %d, want at most 0.2 and at least 9900", i, cv, w.Used, w.Part)
				}
			}
		})
	}
}

// TestPIDDemands measures other demands at 10,000 a second, with late timers.
func TestPIDDemands(t *testing.T) {
	for _, c := range []struct {
		name     string
		demand   simulation.Demand
		patience time.Duration
		used     float64       // minimum fraction of the limit
		cv       float64       // maximum variation in any second
		wait     time.Duration // maximum wait at the 99th percentile
	}{
		{"half the limit, evenly", simulation.Evenly(5000), 0, 0.5, 0, 0},
		{"half the limit, Poisson", simulation.Poisson(5000), 0, 0.49, 0.2, 0},
		{"0.9 of the limit, Poisson", simulation.Poisson(9000), 0, 0.89, 0.15, 0},
		{"exactly the limit, Poisson", simulation.Poisson(10_000), 0, 0.99, 0.2, 100 * ms},
		{"1.1 of the limit, Poisson", simulation.Poisson(11_000), 100 * ms, 0.999, 0.16, 100 * ms},
		{"half the limit, at the start of each second", simulation.AtStart(5000), 0, 0.5, 3.1, 102 * ms},
		{"three times and half the limit, alternating", simulation.Alternating(simulation.AtStart(30_000), simulation.Evenly(5000)), 900 * ms, 0.75, 1.15, 460 * ms},
		{"three times the limit, in the second half", simulation.Between(30_000, 0.5, 1), 100 * ms, 0.999, 1.1, 100 * ms},
		{"three times the limit, in the last fifth", simulation.Between(30_000, 0.8, 1), 100 * ms, 0.99, 2.1, 100 * ms},
		{"three times the limit, at the start, waiting for half a second", simulation.AtStart(30_000), 500 * ms, 0.998, 1.05, 500 * ms},
		{"0.6 of the limit at the start, and the same late", simulation.Both(simulation.AtStart(6000), simulation.Between(6000, 0.8, 1)), 150 * ms, 0.85, 2.2, 151 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := simulation.Setup{Plan: plan(t, 10_000, time.Second, 1, 0), Windows: 18, Demand: c.demand, Patience: c.patience, Late: late, Spread: pid()}
			windows := s.Run()[6:]
			used, cv, wait := simulation.Used(windows), variation(windows, time.Second), simulation.Wait(windows, 0.99)
			t.Logf("used %.4f, variation %.3f, wait %v, spread over %.3f", used, cv, wait, windows[len(windows)-1].Spread)
			if used < c.used || cv > c.cv || wait > c.wait {
				t.Errorf("used %.4f, variation %.3f, wait %v; want at least %v, at most %v and at most %v", used, cv, wait, c.used, c.cv, c.wait)
			}
		})
	}
}

// TestPIDLearnsLate has callers that arrive in the second half of each window and do not
// wait long. Even permits serve little more than half of the limit, and PID serves nearly all.
func TestPIDLearnsLate(t *testing.T) {
	s := simulation.Setup{
		Plan: plan(t, 1000, time.Second, 1, 0), Windows: 20, Demand: simulation.Between(3000, 0.5, 1), Patience: 50 * ms,
		Late: late, Spread: evenly,
	}
	if used := simulation.Used(s.Run()); used > 0.56 {
		t.Errorf("with even permits, %.3f of the limit is used, want at most 0.56", used)
	}
	s.Spread = pid()
	windows := s.Run()
	for i, w := range windows {
		if lost := w.Part - w.Used; lost > []int64{510, 200, 60, 20, 10}[min(i, 4)] {
			t.Errorf("window %d: %d permits are lost, more than allowed", i, lost)
		}
	}
	if got := windows[len(windows)-1].Spread; got < 0.5 || got > 0.6 {
		t.Errorf("in the end, permits open in %.3f of a window, want 0.5 to 0.6", got)
	}
}

// TestPIDShort has windows of 100 ms, in which late timers lose a larger fraction of the
// limit. PID opens permits faster to compensate.
func TestPIDShort(t *testing.T) {
	s := simulation.Setup{Plan: plan(t, 1000, 100*ms, 1, 0), Windows: 200, Demand: simulation.AtStart(3000), Late: late, Spread: evenly}
	if used := simulation.Used(s.Run()[20:]); used > 0.99 {
		t.Errorf("with even permits, %.4f of the limit is used: the late timers lose nothing", used)
	}
	s.Spread = pid()
	if used := simulation.Used(s.Run()[20:]); used < 0.99 {
		t.Errorf("%.4f of the limit is used, want at least 0.99", used)
	}
}

// TestPIDFew divides 10 a second among 96 instances, so each has a unit in about every tenth
// second. All units are used.
func TestPIDFew(t *testing.T) {
	var used int64
	for index := range 96 {
		s := simulation.Setup{
			Plan: plan(t, 10, time.Second, 96, index), Windows: 192, Late: late, Spread: pid(),
			Demand: func(r *rand.Rand, _ int, per time.Duration) []time.Duration {
				return simulation.Poisson(1)(r, 0, per) // Each instance has ten times as many callers as units.
			},
		}
		for _, w := range s.Run()[96:] {
			used += w.Used
			if w.Spread < 1.0/schedule.MaxSpeed || w.Spread > 1 || w.Used > w.Part {
				t.Fatalf("instance %d: the window %+v is out of bounds", index, w)
			}
		}
	}
	if used != 960 {
		t.Errorf("%d units are used, want all 960", used)
	}
}

// TestPIDNext checks the controller's answers to outcomes.
func TestPIDNext(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	all := schedule.Outcome{Part: 1_000_000, Used: 1_000_000, Wanted: true}
	at := func(lasted, until float64) schedule.Outcome {
		o := all
		o.Lasted, o.Until = lasted, until
		return o
	}
	for _, c := range []struct {
		name     string
		outcomes []schedule.Outcome
		want     float64
	}{
		{"even at first", []schedule.Outcome{{}}, 1},
		{"half is used", []schedule.Outcome{{Part: 10, Used: 5}}, math.Pow(0.5, 0.75)},
		{"a tenth is used twice", []schedule.Outcome{{Part: 10, Used: 1}, {Part: 10, Used: 1}}, 0.2},
		{"windows without used units are ignored", []schedule.Outcome{{Part: 10, Used: 2}, {Part: 10}, {Part: 10, Wanted: true}}, math.Pow(0.2, 0.75)},
		{"windows without a part are ignored", []schedule.Outcome{{Part: 10, Used: 5}, {Wanted: true, Lasted: 0.1}}, math.Pow(0.5, 0.75)},
		{"demand that is exactly met changes nothing", []schedule.Outcome{{Part: 10, Used: 5}, {Part: 10, Used: 10, Lasted: 0.1}}, math.Pow(0.5, 0.75)},
		{"all used at 0.2, with demand to the end", []schedule.Outcome{{Part: 10, Used: 1}, {Part: 10, Used: 1}, at(0.2, 1)}, math.Pow(0.2, 0.25)},
		{"never slower than even", []schedule.Outcome{at(0.2, 1)}, 1},
		{"permits last as long as the demand", []schedule.Outcome{{Part: 10, Used: 5}, at(0.4, 0.4)}, math.Pow(0.5, 0.75)},
		{"permits last longer than the demand", []schedule.Outcome{{Part: 10, Used: 5}, at(0.4, 0.3)}, math.Pow(0.5, 0.75)},
		{"all used at 0.2, with demand until 0.8", []schedule.Outcome{{Part: 10, Used: 1}, {Part: 10, Used: 1}, at(0.2, 0.8)}, 0.2 * math.Pow(4, 0.75)},
		{"two units, opened evenly", []schedule.Outcome{{Part: 2, Used: 2, Wanted: true, Lasted: 0.5}}, 1},
		{"NaN and infinities", []schedule.Outcome{{Part: 10, Used: 1}, at(nan, nan), at(-inf, -inf), at(inf, inf), {Part: 10, Used: 1}}, 0.2},
		{"more used than the part", []schedule.Outcome{{Part: 10, Used: 11}, {Part: 1, Used: math.MaxInt64, Wanted: true, Lasted: 7}}, 1},
		{"negative numbers", []schedule.Outcome{{Part: -1, Used: -1}, {Part: 5, Used: -1}, {Part: -5, Used: 5}}, 1},
		{"the largest part", []schedule.Outcome{{Part: math.MaxInt64, Used: 1}}, 0.2},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := pid()
			var got float64
			for _, o := range c.outcomes {
				if got = next(o); !(got >= 0.2 && got <= 1) {
					t.Fatalf("after %+v, Next returns %v, want 0.2 to 1", o, got)
				}
			}
			if math.Abs(got-c.want) > 1e-6 {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
