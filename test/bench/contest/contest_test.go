package contest

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestMedianInterval(t *testing.T) {
	ten := []float64{10, 1, 9, 2, 8, 3, 7, 4, 6, 5}
	got := MedianInterval(ten)
	if got.Median != 5.5 || got.Low != 2 || got.High != 9 {
		t.Errorf("of ten values: got %+v, want median 5.5 within 2 and 9", got)
	}
	if math.Abs(got.Confidence-0.978515625) > 1e-9 {
		t.Errorf("confidence of ten values without one on each side: got %v, want 0.9785", got.Confidence)
	}
	if got := MedianInterval([]float64{3, 1, 2}); got.Low != 1 || got.High != 3 || got.Confidence != 0.75 {
		t.Errorf("of three values: got %+v, want all of them at 75 %%", got)
	}
	twenty := make([]float64, 20)
	for i := range twenty {
		twenty[i] = float64(i + 1)
	}
	if got := MedianInterval(twenty); got.Low != 6 || got.High != 15 {
		t.Errorf("of twenty values: got %+v, want within the 6th and the 15th", got)
	}
	if got := MedianInterval(nil); got != (Interval{}) {
		t.Errorf("of none: got %+v", got)
	}
}

func TestJudge(t *testing.T) {
	i := Interval{Median: 1, Low: 0.9, High: 1.1, Confidence: 0.95}
	for bar, want := range map[float64]Verdict{0: NoBar, 0.8: Missed, 0.9: Open, 1: Open, 1.1: Met, 2: Met} {
		if got := Judge(i, bar); got != want {
			t.Errorf("bar %v: got %q, want %q", bar, got, want)
		}
	}
	i.Confidence = 0.9
	if got := Judge(i, 0.5); got != TooFew {
		t.Errorf("at 90 %%: got %q, want %q", got, TooFew)
	}
}

// timely is a side whose operation takes so many nanoseconds of a bubble's time.
func timely(name string, kind Kind, ns int) Side {
	return Side{Name: name, Kind: kind, Run: func(_, n int) Tally {
		time.Sleep(time.Duration(n * ns)) //nolint:forbidigo // In the bubbles of TestMeasure and TestMeters.
		return Tally{Allowed: n}
	}}
}

func TestMeasure(t *testing.T) { synctest.Test(t, testMeasure) }

func testMeasure(t *testing.T) {
	t.Helper()
	c := Contest{
		Name: "timely", Workers: 1, Want: Allow,
		Sides: []Side{timely("ours", Ours, 1000), timely("slow", Peer, 8000), timely("quick", Peer, 4000)},
		Questions: []Question{
			{Of: "ours", Against: FastestExact, Bar: 0.5},
			{Of: "slow", Against: "ours", Bar: 2},
			{Of: "slow", Against: "quick", Beyond: "ours"}, // 7000 / 3000
		},
	}
	r, err := c.Measure(t.Context(), Effort{Rounds: 10, Slice: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if a := r.Ratios[0]; a.Against != "quick" || a.Verdict != Met || len(a.Rounds) != 10 {
		t.Errorf("against the fastest: got %+v, want met against quick in 10 rounds", a)
	}
	if a := r.Ratios[1]; a.Verdict != Missed {
		t.Errorf("of the slow side: got %+v, want missed", a)
	}
	if a := r.Ratios[2]; a.Beyond != "ours" || math.Abs(a.Median-7.0/3) > 1e-9 {
		t.Errorf("of what two sides take beyond a third: got %+v, want 7/3", a)
	}
	if r.Rows[0].Allocs > 0.1 {
		t.Errorf("sleeping allocates %v objects an operation", r.Rows[0].Allocs)
	}
}

// TestMeters: what a meter shows is told per operation, and compared by its own ratio.
func TestMeters(t *testing.T) { synctest.Test(t, testMeters) }

func testMeters(t *testing.T) {
	t.Helper()
	metered := func(name string, kind Kind, each time.Duration) Side {
		var used time.Duration
		s := timely(name, kind, 100_000)
		run := s.Run
		s.Run = func(worker, n int) Tally {
			used += time.Duration(n) * each
			return run(worker, n)
		}
		s.Meters = []Meter{{Name: "server", Read: func() (time.Duration, error) { return used, nil }}}
		return s
	}
	c := Contest{
		Name: "meters", Workers: 1, Least: Batch,
		Sides: []Side{metered("ours", Ours, 3), metered("peer", Peer, 6)},
		Questions: []Question{
			{Of: "ours", Against: FastestExact, Meter: "server", Bar: 0.5}, {Of: "ours", Against: FastestExact},
		},
	}
	r, err := c.Measure(t.Context(), Effort{Rounds: 6, Slice: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Rows[1].Meters; len(m) != 1 || m[0].Median != 6 || len(m[0].Rounds) != 6 {
		t.Errorf("the peer's meter: got %+v, want 6 ns an operation in 6 rounds", m)
	}
	if a := r.Ratios[0]; a.Median != 0.5 || a.Meter != "server" || a.Verdict != Met || len(r.Ratios) != 2 {
		t.Errorf("the ratio of the meters: got %+v of %d, want 0.5 and met, and that of the times beside it", a, len(r.Ratios))
	}
	c.Questions = []Question{{Of: "ours", Against: "peer", Meter: "client"}}
	if _, err := c.Measure(t.Context(), Effort{Rounds: 1, Slice: time.Millisecond}); err == nil {
		t.Error("a meter that nobody has: got no error")
	}
}

// TestDifference: what a side takes longer than another is told in nanoseconds, of the
// time on the wall or of what a meter has shown.
func TestDifference(t *testing.T) {
	var ours, clock []sample
	for i := range 6 {
		ours = append(ours, sample{ns: float64(70 + i), meters: []float64{140}})
		clock = append(clock, sample{ns: float64(30 + i), meters: []float64{0}})
	}
	meters := []Meter{{Name: "CPU"}}
	c := Contest{Sides: []Side{{Name: "ours", Meters: meters}, {Name: "clock", Meters: meters}}}
	for _, q := range []struct {
		meter   string
		bar     float64
		want    float64
		verdict Verdict
	}{{"", 0, 40, NoBar}, {"", 39, 40, Missed}, {"", 40, 40, Met}, {"CPU", 139, 140, Missed}, {"CPU", 140, 140, Met}} {
		c.Questions = []Question{{Of: "ours", Against: "clock", Meter: q.meter, Difference: true, Bar: q.bar}, {Of: "ours", Against: "clock"}}
		r, err := c.result([][]sample{ours, clock})
		if err != nil {
			t.Fatal(err)
		}
		if a := r.Ratios[0]; a.Median != q.want || !a.Difference || a.Meter != q.meter || a.Verdict != q.verdict {
			t.Errorf("meter %q, bar %v: got %+v, want %v ns and %q", q.meter, q.bar, a, q.want, q.verdict)
		}
		if len(r.Ratios) != 2 || r.Ratios[1].Difference {
			t.Errorf("got %+v, want the ratio beside the difference", r.Ratios)
		}
	}
}

func TestMeasureRefusesOtherWork(t *testing.T) {
	answers := func(t Tally) Side {
		return Side{Name: "side", Run: func(_, n int) Tally {
			timely("", Peer, 1000).Run(0, n)
			return Tally{t.Allowed * n, t.Denied * n, t.Failed * n, t.Err}
		}}
	}
	mayFail := answers(Tally{Failed: 1})
	mayFail.MayFail = true
	for _, c := range []struct {
		want Outcome
		side Side
		says string
	}{
		{Allow, answers(Tally{Denied: 1}), "the wrong way"},
		{Deny, answers(Tally{Allowed: 1}), "the wrong way"},
		{Allow, answers(Tally{Failed: 1}), "failed"},
		{Allow, answers(Tally{Failed: 1, Err: errors.New("the reason")}), "the reason"},
		{Allow, answers(Tally{}), "answered 0 times"},
		{Allow, mayFail, ""},
		{Deny, answers(Tally{Denied: 1}), ""},
	} {
		contest := Contest{Name: "c", Workers: 2, Want: c.want, Sides: []Side{c.side}}
		_, err := contest.Measure(t.Context(), Effort{Rounds: 1, Slice: time.Millisecond})
		if got := errText(err); c.says == "" && got != "" || !strings.Contains(got, c.says) {
			t.Errorf("got %q, want %q", got, c.says)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
