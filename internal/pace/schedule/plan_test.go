package schedule

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// fleet returns the plans of all instances of an even division.
func fleet(t *testing.T, limit int64, instances int) []Plan {
	t.Helper()
	plans := make([]Plan, instances)
	for i := range plans {
		var err error
		if plans[i], err = Even(limit, time.Second, instances, i); err != nil {
			t.Fatal(err)
		}
	}
	return plans
}

// TestTenOverThree checks the parts of a small division.
func TestTenOverThree(t *testing.T) {
	plans := fleet(t, 10, 3)
	for w, want := range [][3]int64{{3, 3, 4}, {3, 4, 3}, {4, 3, 3}, {3, 3, 4}} {
		for i, p := range plans {
			if got := p.Part(int64(w)); got != want[i] {
				t.Errorf("window %d, instance %d: got %d units, want %d", w, i, got, want[i])
			}
		}
	}
}

// TestNinetySix divides several limits among 96 instances. The parts add up to the limit in
// every window. In any run of windows, each instance differs from its even part by less than
// one unit.
func TestNinetySix(t *testing.T) {
	const n = 96
	for _, limit := range []int64{10, 95, 97, 1000, 2_000_000} {
		var had [n]int64                // units since the first window
		var high, low [n]int64          // maximum and minimum of N*had - k*R so far
		const first, last = -300, 1_000 // includes windows before 1970
		plans := fleet(t, limit, n)
		for w := int64(first); w < last; w++ {
			var sum int64
			for i, p := range plans {
				part := p.Part(w)
				if sum += part; part > p.Most() || part < p.Most()-1 {
					t.Fatalf("limit %d, window %d: instance %d has %d units, but Most returns %d", limit, w, i, part, p.Most())
				}
				had[i] += part
				ahead := n*had[i] - (w-first+1)*limit
				high[i], low[i] = max(high[i], ahead), min(low[i], ahead)
			}
			if sum != limit {
				t.Fatalf("limit %d, window %d: the parts add up to %d, want the limit", limit, w, sum)
			}
		}
		for i := range plans {
			if high[i]-low[i] >= n { // The difference covers every run of windows.
				t.Errorf("limit %d: instance %d differs from its even part by %d/%d in some run, want less than 1", limit, i, high[i]-low[i], n)
			}
		}
	}
}

// TestSumAgainstTwin compares parts and sums with the formula in big integers.
func TestSumAgainstTwin(t *testing.T) {
	forInputs(1, func(n int, r *rand.Rand) bool {
		p, from := drawEven(r), drawWindow(r)
		to := oneOf(r, from, from+1, from+1+r.Int64N(1000), drawWindow(r))
		if got, want := p.Sum(from, to), fits(twinSum(p, from, to)); got != want {
			t.Errorf("input %d: plan %+v, windows %d to %d: got %d units, want %d", n, p, from, to, got, want)
		}
		if from < math.MaxInt64 {
			if got, want := p.Part(from), fits(twinSum(p, from, from+1)); got != want {
				t.Errorf("input %d: plan %+v, window %d: got %d units, want %d", n, p, from, got, want)
			}
		}
		return !t.Failed()
	})
}

// TestAfterAgainstTwin checks that enough units have come by the returned window, and not before.
func TestAfterAgainstTwin(t *testing.T) {
	forInputs(2, func(n int, r *rand.Rand) bool {
		p, from := drawEven(r), drawWindow(r)
		need := oneOf(r, 1+r.Int64N(5), 1+r.Int64N(1000), p.Limit+1, 1+r.Int64N(math.MaxInt64), math.MaxInt64)
		w, before, ok := p.After(from, need)
		if !ok {
			// Not even the last possible window may have enough units.
			last := math.MaxInt64/int64(p.Per) - 1
			if from < 0 {
				last += from
			}
			if last > from && fits(twinSum(p, from, last)) >= need {
				t.Errorf("input %d: plan %+v: After does not find %d units since window %d, but they have come by window %d", n, p, need, from, last)
			}
			return !t.Failed()
		}
		sum := twinSum(p, from, w)
		part := big.NewInt(p.Part(w))
		if part.Add(part, sum); w < from || fits(sum) != before || before >= need || part.Cmp(big.NewInt(need)) < 0 {
			t.Errorf("input %d: plan %+v: After puts %d units since window %d into window %d, with %d before, which the twin contradicts", n, p, need, from, w, before)
		}
		return !t.Failed()
	})
}

// TestAfterByCounting compares After with counting window by window, for small numbers.
func TestAfterByCounting(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range inputs() / 50 {
		instances := 1 + r.IntN(12)
		limit := r.Int64N(30)
		for i, plan := range fleet(t, limit, instances) {
			from, need := r.Int64N(2000)-1000, 1+r.Int64N(60)
			w, before, ok := plan.After(from, need)
			wantW, wantBefore, wantOK := twinAfter(plan.Part, from, need, 60_000)
			if w != wantW || before != wantBefore || ok != wantOK {
				t.Fatalf("plan %d of %d instances, limit %d: After for %d units since window %d returns %d %d %v, want %d %d %v",
					i, instances, limit, need, from, w, before, ok, wantW, wantBefore, wantOK)
			}
		}
	}
}

// TestAfter checks the windows in which units come.
func TestAfter(t *testing.T) {
	few := fleet(t, 10, 96)[95] // has units in windows 0, 9, 19, 28, ...
	for _, c := range []struct {
		name          string
		plan          Plan
		from, need    int64
		window, after int64
		ok            bool
	}{
		{"no units are needed", few, 5, 0, 5, 0, true},
		{"a unit at once", few, 0, 1, 0, 0, true},
		{"a unit after 9 s", few, 1, 1, 9, 0, true},
		{"the second unit after 19 s", few, 1, 2, 19, 1, true},
		{"a limit of 0", fleet(t, 0, 1)[0], 0, 1, 0, 0, false},
		{"the zero plan", Plan{}, 0, 1, 0, 0, false},
		{"units beyond 292 years", few, 0, 1 << 40, 0, 0, false},
		{"the largest number of units", fleet(t, MaxLimit, 1)[0], 0, math.MaxInt64, 1<<23 - 1, (1<<23 - 1) << 40, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, before, ok := c.plan.After(c.from, c.need)
			if w != c.window || before != c.after || ok != c.ok {
				t.Errorf("After returns window %d with %d units before, %v; want %d, %d and %v", w, before, ok, c.window, c.after, c.ok)
			}
		})
	}
}

// TestWindows checks windows before 1970 and at the first and last Instant.
func TestWindows(t *testing.T) {
	p := fleet(t, 1, 1)[0]
	const second = headgate.Instant(time.Second)
	for _, c := range []struct {
		at    headgate.Instant
		w     int64
		start headgate.Instant
	}{
		{0, 0, 0},
		{second - 1, 0, 0},
		{second, 1, second},
		{-1, -1, -second},
		{-second, -1, -second},
		{-second - 1, -2, -2 * second},
		{math.MaxInt64, 9223372036, 9223372036 * second},
		{math.MinInt64, -9223372037, -9223372036 * second}, // An Instant cannot represent its start.
	} {
		if w := p.Window(c.at); w != c.w || p.Start(w) != c.start {
			t.Errorf("time %d is in window %d, which starts at %d, want window %d and start %d", c.at, w, p.Start(w), c.w, c.start)
		}
	}
	if last := p.Start(math.MaxInt64); last != 9223372036*second {
		t.Errorf("the last window starts at %d", last)
	}
	if (Plan{}).Window(5) != 0 || (Plan{}).Start(5) != 0 || (Plan{}).Part(5) != 0 || (Plan{}).Most() != 0 || (Plan{}).Sum(1, 9) != 0 {
		t.Error("the zero plan does not return 0 for all methods")
	}
}

// TestCheck checks the errors of invalid plans.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		plan Plan
		says string
	}{
		{Plan{Limit: -1, Per: time.Second, Instances: 1}, "limit -1: use a limit from 0 to 1099511627776"},
		{Plan{Limit: MaxLimit + 1, Per: time.Second, Instances: 1}, "limit 1099511627777"},
		{Plan{Per: MinPer - 1, Instances: 1}, "a window of 999.999µs: use a window from 1ms to 8784h0m0s"},
		{Plan{Per: MaxPer + 1, Instances: 1}, "a window of 8784h0m0.000000001s"},
		{Plan{Per: time.Second}, "0 instances: use from 1 to 1048576 instances"},
		{Plan{Per: time.Second, Instances: MaxInstances + 1}, "1048577 instances"},
		{Plan{Per: time.Second, Instances: 3, Index: 3}, "index 3 of 3 instances: use an index from 0 to 2"},
		{Plan{Per: time.Second, Instances: 3, Index: -1}, "index -1 of 3"},
		{Plan{}, "a window of 0s"},
	} {
		if err := c.plan.Check(); !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("plan %+v: got error %v, want %q in it", c.plan, err, c.says)
		}
		c.plan.Part(1) // The methods of an invalid plan must not panic.
		c.plan.Sum(-5, 5)
		c.plan.After(1, 1)
	}
	if _, err := Even(1, 0, 1, 0); !errors.Is(err, ErrPlan) {
		t.Errorf("Even with a window of 0: got error %v, want ErrPlan", err)
	}
	if p, err := Even(MaxLimit, MaxPer, MaxInstances, MaxInstances-1); err != nil || p.Check() != nil {
		t.Errorf("the largest plan: got error %v", err)
	}
}

// TestEqual checks that plans with equal arguments are equal, and others are not.
func TestEqual(t *testing.T) {
	plans := func() []Plan { return append(fleet(t, 10, 2), fleet(t, 11, 1)[0], fleet(t, 10, 3)[0], Plan{}) }
	for i, p := range plans() {
		for k, q := range plans() {
			if p.Equal(q) != (i == k) {
				t.Errorf("plans %d and %d: Equal returns %v", i, k, p.Equal(q))
			}
		}
	}
}

// TestAllocationFree checks that the calls of each window and of each caller allocate nothing.
func TestAllocationFree(t *testing.T) {
	even := fleet(t, 95, 96)[7]
	var timeline Timeline
	timeline.Add(Change{Plan: even, From: 0})
	timeline.Add(Change{Plan: fleet(t, 5, 3)[1], From: headgate.Instant(time.Hour)})
	line := Line{Part: 1000, Length: 1 << 30, Credit: 1}
	var pid PID
	var w int64
	for name, f := range map[string]func(){
		"Part":           func() { w += even.Part(w + 1) },
		"Sum":            func() { w += even.Sum(0, 9) },
		"After":          func() { even.After(w, 5) },
		"Braked":         func() { w += even.Braked(w, 30) },
		"At":             func() { timeline.At(headgate.Instant(w), 0) },
		"timeline After": func() { timeline.After(headgate.Instant(w), 1) },
		"Open":           func() { w += line.Open(1<<20) + line.When(3); line.Idle(1<<20, 0) },
		"Next":           func() { pid.Next(Outcome{Part: 10, Used: 9}) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: got %v allocations, want 0", name, n)
		}
	}
}
