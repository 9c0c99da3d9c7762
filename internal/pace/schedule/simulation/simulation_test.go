package simulation

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/pace/schedule"
)

const ms = time.Millisecond

func setup(t *testing.T, limit int64) Setup {
	t.Helper()
	p, err := schedule.Even(limit, time.Second, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return Setup{Plan: p, Windows: 3, Demand: AtStart(6)}
}

func evenly(schedule.Outcome) float64 { return 1 }

// TestStories has six callers and four permits in each window.
func TestStories(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Setup)
		want   [][]time.Duration // times of the permits in each window
		first  schedule.Outcome  // outcome of the first window
	}{
		{
			"at once", func(*Setup) {},
			[][]time.Duration{{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}},
			schedule.Outcome{Part: 4, Used: 4, Wanted: true, Lasted: 0, Until: 1},
		},
		{
			"evenly", func(s *Setup) { s.Spread = evenly },
			[][]time.Duration{{0, 250 * ms, 500 * ms, 750 * ms}, {0, 250 * ms, 500 * ms, 750 * ms}, {0, 250 * ms, 500 * ms, 750 * ms}},
			schedule.Outcome{Part: 4, Used: 4, Wanted: true, Lasted: 0.75, Until: 1},
		},
		{
			"callers wait for 600 ms", func(s *Setup) { s.Spread, s.Patience = evenly, 600*ms },
			[][]time.Duration{{0, 250 * ms, 500 * ms}, {0, 250 * ms, 500 * ms}, {0, 250 * ms, 500 * ms}},
			schedule.Outcome{Part: 4, Used: 3, Until: 0.6},
		},
		{
			"permits open in half a window and callers wait for 600 ms", func(s *Setup) {
				s.Spread, s.Patience = func(schedule.Outcome) float64 { return 0.5 }, 600*ms
			},
			[][]time.Duration{{0, 125 * ms, 250 * ms, 375 * ms}, {0, 125 * ms, 250 * ms, 375 * ms}, {0, 125 * ms, 250 * ms, 375 * ms}},
			schedule.Outcome{Part: 4, Used: 4, Wanted: true, Lasted: 0.375, Until: 0.6},
		},
		{
			"late callers after permits expired", func(s *Setup) {
				s.Spread, s.Demand, s.Patience = evenly, Between(6, 0.6, 0.6), 200*ms
			},
			[][]time.Duration{{600 * ms, 750 * ms}, {600 * ms, 750 * ms}, {600 * ms, 750 * ms}},
			schedule.Outcome{Part: 4, Used: 2, Until: 0.8},
		},
		{
			"one of two instances", func(s *Setup) { s.Plan.Instances, s.Plan.Index, s.Spread = 2, 1, evenly },
			[][]time.Duration{{250 * ms, 750 * ms}, {250 * ms, 750 * ms}, {250 * ms, 750 * ms}},
			schedule.Outcome{Part: 2, Used: 2, Wanted: true, Lasted: 0.75, Until: 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := setup(t, 4)
			c.change(&s)
			windows := s.Run()
			for i, w := range windows {
				if !slices.Equal(w.Given, c.want[i]) {
					t.Errorf("window %d: permits were given at %v, want %v", i, w.Given, c.want[i])
				}
			}
			if got := windows[0].Outcome; got != c.first {
				t.Errorf("the first outcome is %+v, want %+v", got, c.first)
			}
		})
	}
}

// TestNothingIsLost checks random demands. No window gives more than its part, and permits are
// given in order. No caller waits longer than its patience or gets a permit before it arrives.
// A second run has the same results.
func TestNothingIsLost(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for seed := range uint64(200) {
		s := setup(t, r.Int64N(100))
		s.Windows, s.Seed, s.Late = 8, seed, time.Duration(r.Int64N(int64(20*ms)))
		s.Patience = time.Duration(r.Int64N(int64(2 * time.Second)))
		s.Demand = Both(Poisson(1+r.IntN(150)), InTurn(Phase{Windows: 2, Demand: AtStart(r.IntN(50))}, Phase{Demand: Alternating(Evenly(r.IntN(90)), Between(50, 0.3, 0.9))}))
		s.Spread = [](func(schedule.Outcome) float64){nil, evenly, new(schedule.PID).Next}[r.IntN(3)]
		came, waited := 0, 0
		windows := s.Run()
		for i, w := range windows {
			demand := s.Demand(rand.New(rand.NewPCG(seed, uint64(i)+1)), i, time.Second)
			if came += len(demand); !slices.IsSorted(demand) || w.Used > w.Part || int(w.Used) != len(w.Given) || len(w.Waits) != len(w.Given) {
				t.Fatalf("seed %d: window %d is inconsistent: %+v", seed, i, w)
			}
			for k, at := range w.Given {
				wait := w.Waits[k]
				if at < 0 || at >= time.Second || k > 0 && at < w.Given[k-1] || wait < 0 || s.Patience > 0 && wait > s.Patience {
					t.Fatalf("seed %d: window %d: a permit was given at %v after a wait of %v, out of bounds or order", seed, i, at, wait)
				}
				waited++
			}
		}
		if waited > came {
			t.Fatalf("seed %d: %d callers were served, but only %d arrived", seed, waited, came)
		}
		if s.Spread == nil && !reflect.DeepEqual(windows, s.Run()) {
			t.Fatalf("seed %d: a second run has other results", seed)
		}
	}
}

// TestFull has more callers than may wait.
func TestFull(t *testing.T) {
	s := setup(t, 1)
	s.Windows, s.Demand = 1, AtStart(maxWaiters+100)
	s.Patience = 10 * time.Millisecond
	if w := s.Run()[0]; w.Used != 1 || w.Until != 0.01 {
		t.Errorf("got the outcome %+v, want one used unit and demand until 0.01", w.Outcome)
	}
}

// TestMeasures checks the measurements of a window.
func TestMeasures(t *testing.T) {
	w := Window{
		Outcome: schedule.Outcome{Part: 8, Used: 4},
		Given:   []time.Duration{0, 5 * ms, 10 * ms, 49 * ms}, Waits: []time.Duration{4 * ms, ms, 3 * ms, 2 * ms},
	}
	if got := w.Slots(45*ms, 10*ms); !slices.Equal(got, []int{2, 1, 0, 0, 1}) {
		t.Errorf("Slots returns %v, want [2 1 0 0 1]", got)
	}
	for _, c := range []struct {
		counts []int
		want   float64
	}{{[]int{5, 5, 5}, 0}, {[]int{0, 10}, 1}, {[]int{0, 0, 0, 8}, math.Sqrt(3)}, {[]int{0, 0}, 0}} {
		if got := Variation(c.counts); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("counts %v: got variation %v, want %v", c.counts, got, c.want)
		}
	}
	both := []Window{w, {Outcome: schedule.Outcome{Part: 8, Used: 8}}}
	if got := Used(both); got != 0.75 {
		t.Errorf("Used returns %v, want 0.75", got)
	}
	if Wait(both, 0.5) != 3*ms || Wait(both, 0.99) != 4*ms || Wait(both, 1) != 4*ms || Wait(nil, 0.5) != 0 || Used(nil) != 0 {
		t.Error("Wait or Used returns a wrong value")
	}
}

// TestPoisson checks the mean and the variance of the number of callers.
func TestPoisson(t *testing.T) {
	var sum, squares float64
	const n, windows = 400, 2000
	r := rand.New(rand.NewPCG(2, 2))
	for range windows {
		d := float64(len(Poisson(n)(r, 0, time.Second)) - n)
		sum, squares = sum+d, squares+d*d
	}
	if mean, variance := sum/windows, squares/windows; math.Abs(mean) > 2 || variance < 0.85*n || variance > 1.15*n {
		t.Errorf("the mean differs by %.2f and the variance is %.0f, want about 0 and 400", mean, variance)
	}
}
