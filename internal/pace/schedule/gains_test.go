package schedule_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/internal/pace/schedule/simulation"
)

// trial is an incremental PID controller with the gains p, i and d. schedule.PID is the
// case of chosen.
type trial struct{ p, i, d, fastest float64 }

// chosen returns the gains of schedule.PID.
func chosen() trial { return trial{i: 0.75, fastest: schedule.MaxSpeed} }

func (g trial) next() func(schedule.Outcome) float64 {
	var speed, e1, e2 float64
	return func(o schedule.Outcome) float64 {
		if o.Part > 0 && o.Used > 0 {
			var e float64
			switch {
			case o.Used < o.Part:
				e = math.Log(float64(o.Part) / float64(o.Used))
			case o.Wanted:
				lasted := max(o.Lasted+math.Exp(-speed)/float64(o.Part), 1/g.fastest)
				e = min(math.Log(lasted/o.Until), 0)
			}
			speed += g.p*(e-e1) + g.i*e + g.d*(e-2*e1+e2)
			speed = min(max(speed, 0), math.Log(g.fastest))
			e1, e2 = e, e1
		}
		return max(math.Exp(-speed), 1/g.fastest)
	}
}

// judged has the results of a controller with a limit of 400 a second.
type judged struct {
	windows  int           // windows until permits are spread over 0.96 of a window, after low demand
	overload float64       // sum of the variations of the first windows
	jitter   float64       // fraction used, if demand begins randomly at 0.4 to 0.7 of a window
	drift    float64       // fraction used, if the start of the demand moves between 0.2 and 0.7 in 20 windows
	last     float64       // fraction used, if demand is in the last tenth of each window
	burst    time.Duration // wait at the 99th percentile, for a burst of half the limit
}

func (g trial) judge(t *testing.T) (j judged) {
	t.Helper()
	run := func(demand simulation.Demand, windows int, patience time.Duration) []simulation.Window {
		s := simulation.Setup{Plan: plan(t, 400, time.Second, 1, 0), Demand: demand, Windows: windows, Patience: patience, Late: late, Spread: g.next(), Seed: 5}
		return s.Run()
	}
	from := func(start func(r *rand.Rand, window int) float64) simulation.Demand {
		return func(r *rand.Rand, window int, per time.Duration) []time.Duration {
			return simulation.Between(1200, start(r, window), 1)(r, window, per)
		}
	}
	overload := run(simulation.InTurn(simulation.Phase{Windows: 10, Demand: simulation.Evenly(100)}, simulation.Phase{Demand: simulation.AtStart(1200)}), 30, 0)[10:]
	for i, w := range overload {
		if w.Spread < 0.96 {
			j.windows = i + 1
		}
	}
	for _, w := range overload[:j.windows] {
		j.overload += simulation.Variation(w.Slots(time.Second, slot))
	}
	j.jitter = simulation.Used(run(from(func(r *rand.Rand, _ int) float64 { return 0.4 + 0.3*r.Float64() }), 160, 50*ms)[10:])
	j.drift = simulation.Used(run(from(func(_ *rand.Rand, n int) float64 { return 0.45 + 0.25*math.Sin(float64(n)*math.Pi/10) }), 90, 50*ms)[10:])
	j.burst = simulation.Wait(run(simulation.AtStart(200), 30, 0)[10:], 0.99)
	j.last = simulation.Used(run(from(func(*rand.Rand, int) float64 { return 0.9 }), 40, 20*ms)[10:])
	return j
}

// TestGains compares gains, and shows that the chosen ones are best. docs/decisions/0011 has its table.
func TestGains(t *testing.T) {
	all := map[trial]judged{}
	for _, g := range []trial{
		{0.2, 0.5, 0.05, 5},
		{0, 0.3, 0, 5},
		{0, 0.5, 0, 5},
		chosen(),
		{0, 1, 0, 5},
		{0, 1.5, 0, 5},
		{0.2, 0.75, 0, 5},
		{-0.2, 0.75, 0, 5},
		{0, 0.75, 0.1, 5},
		{0, 0.75, -0.1, 5},
		{0, 0.75, 0, 2},
		{0, 0.75, 0, 10},
		{0, 0.75, 0, 20},
	} {
		j := g.judge(t)
		all[g] = j
		t.Logf("| %5.2f | %4.2f | %5.2f | %2.0f | %2d | %.1f | %.1f %% | %.1f %% | %.1f %% | %v |", g.p, g.i, g.d, g.fastest,
			j.windows, j.overload, 100*j.jitter, 100*j.drift, 100*j.last, j.burst.Round(ms))
	}
	ours := all[chosen()]
	for g, j := range all {
		switch {
		case g == chosen() || g.fastest != schedule.MaxSpeed:
		case g.i == 0.75: // P or D in addition improve nothing noticeably.
			if j.windows < ours.windows || j.overload < ours.overload || j.jitter > ours.jitter+0.002 || j.drift > ours.drift+0.005 {
				t.Errorf("the gains %+v are better than the chosen ones: %+v", g, j)
			}
		case g.i < 0.75: // A smaller gain is slower, and hardly better with jitter.
			if j.windows <= ours.windows || j.drift >= ours.drift || j.jitter > ours.jitter+0.01 {
				t.Errorf("the gains %+v are better than the chosen ones: %+v", g, j)
			}
		case j.jitter >= ours.jitter: // A larger gain uses less when demand jitters.
			t.Errorf("the gains %+v are better than the chosen ones: %+v", g, j)
		}
	}
	if all[trial{0, 0.75, 0, 10}].overload < ours.overload+1 || all[trial{0, 0.75, 0, 2}].drift > ours.drift-0.02 {
		t.Error("a maximum speed of 2 or 10 has no disadvantage over 5")
	}
}

// TestTrialIsPID checks that the trial with the chosen gains equals schedule.PID.
func TestTrialIsPID(t *testing.T) {
	ours, same := pid(), chosen().next()
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		o := schedule.Outcome{Part: 1 + r.Int64N(20), Wanted: true, Lasted: r.Float64(), Until: 1 - r.Float64()/2}
		o.Used = min(r.Int64N(30), o.Part)
		if got, want := ours(o), same(o); math.Abs(got-want) > 1e-12 {
			t.Fatalf("after %+v, PID returns %v and the trial %v", o, got, want)
		}
	}
}

// stable is Jury's test of z^3 + (gS-1)z^2 - g(P+2D)z + gD, with S = P+I+D. The package
// comment derives the polynomial.
func stable(p, i, d, g float64) bool {
	a2, a1, a0 := g*(p+i+d)-1, -g*(p+2*d), g*d
	return 1+a2+a1+a0 > 0 && 1-a2+a1-a0 > 0 && math.Abs(a0) < 1 && math.Abs(1-a0*a0) > math.Abs(a1-a0*a2)
}

// TestStability compares the region of stable gains with the simulated loop.
func TestStability(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	decided := map[bool]int{}
	for range 2000 {
		p, i, d, g := r.Float64()*3-1.5, r.Float64()*3-0.5, r.Float64()*2-1, r.Float64()
		u, e1, e2 := 1.0, 0.0, 0.0
		for n := 0; n < 3000 && math.Abs(u)+math.Abs(e1) < 1e9; n++ {
			e := -g * u
			u += p*(e-e1) + i*e + d*(e-2*e1+e2)
			e1, e2 = e, e1
		}
		switch size := math.Abs(u) + math.Abs(e1); {
		case size < 1e-6 != stable(p, i, d, g) && (size < 1e-6 || size > 1e6):
			t.Errorf("P %.3f I %.3f D %.3f, plant %.3f: stable returns %v, but the final error of the speed is %g", p, i, d, g, stable(p, i, d, g), size)
		case size < 1e-6 || size > 1e6:
			decided[size < 1e-6]++
		}
	}
	if decided[true] < 200 || decided[false] < 200 {
		t.Errorf("too few draws are clearly stable or unstable: %v, want at least 200 each", decided)
	}
	for _, c := range []struct {
		p, i, d float64
		want    bool
	}{
		{0, 0.75, 0, true},
		{0, 1, 0, true},
		{0, 1.99, 0, true},
		{0, 2.01, 0, false},
		{0, 0, 0, false},
		{0, -0.1, 0, false},
		{0.2, 0.5, 0.05, true},
		{0.9, 0.5, 0, false},
		{0, 0.75, 0.4, false},
	} {
		if got := stable(c.p, c.i, c.d, 1); got != c.want {
			t.Errorf("gains %s: stable returns %v, want %v", fmt.Sprint(c.p, c.i, c.d), got, c.want)
		}
	}
}
