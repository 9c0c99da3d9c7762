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
		t.Errorf("ten values: got %+v, want median 5.5, low 2, high 9", got)
	}
	if math.Abs(got.Confidence-0.978515625) > 1e-9 {
		t.Errorf("ten values with one excluded on each side: got confidence %v, want 0.9785", got.Confidence)
	}
	if got := MedianInterval([]float64{3, 1, 2}); got.Low != 1 || got.High != 3 || got.Confidence != 0.75 {
		t.Errorf("three values: got %+v, want low 1, high 3, confidence 0.75", got)
	}
	twenty := make([]float64, 20)
	for i := range twenty {
		twenty[i] = float64(i + 1)
	}
	if got := MedianInterval(twenty); got.Low != 6 || got.High != 15 {
		t.Errorf("twenty values: got %+v, want low 6, high 15", got)
	}
	if got := MedianInterval(nil); got != (Interval{}) {
		t.Errorf("no values: got %+v, want the zero Interval", got)
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
		t.Errorf("confidence 0.9: got %q, want %q", got, TooFew)
	}
}

// timely returns a side that sleeps ns nanoseconds for each operation. The time is that
// of a synctest bubble.
func timely(name string, kind Kind, ns int) Side {
	return Side{Name: name, Kind: kind, Run: func(_, n int) Tally {
		time.Sleep(time.Duration(n * ns)) //nolint:forbidigo // The synctest bubbles of TestMeasure and TestMeters control this time.
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
			{Of: "slow", Against: "quick", Beyond: "ours"}, // The ratio is (8000-1000) / (4000-1000).
		},
	}
	r, err := c.Measure(t.Context(), Effort{Rounds: 10, Slice: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if a := r.Ratios[0]; a.Against != "quick" || a.Verdict != Met || len(a.Rounds) != 10 {
		t.Errorf("ratio to the fastest peer: got %+v, want met against quick in 10 rounds", a)
	}
	if a := r.Ratios[1]; a.Verdict != Missed {
		t.Errorf("ratio of the slow side: got %+v, want missed", a)
	}
	if a := r.Ratios[2]; a.Beyond != "ours" || math.Abs(a.Median-7.0/3) > 1e-9 {
		t.Errorf("ratio beyond a base side: got %+v, want median 7/3", a)
	}
	if r.Rows[0].Allocs > 0.1 {
		t.Errorf("got %v allocations per sleep, want none", r.Rows[0].Allocs)
	}
}

// TestMeters checks that a meter is reported per operation and has a ratio of its own.
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
		t.Errorf("meter of the peer: got %+v, want median 6 ns in 6 rounds", m)
	}
	if a := r.Ratios[0]; a.Median != 0.5 || a.Meter != "server" || a.Verdict != Met || len(r.Ratios) != 2 {
		t.Errorf("ratio of the meters: got %+v and %d ratios, want median 0.5, met, and 2 ratios", a, len(r.Ratios))
	}
	c.Questions = []Question{{Of: "ours", Against: "peer", Meter: "client"}}
	if _, err := c.Measure(t.Context(), Effort{Rounds: 1, Slice: time.Millisecond}); err == nil {
		t.Error("question about an unknown meter: got no error")
	}
}

// TestDifference checks differences in nanoseconds, both of the elapsed time and of a
// meter.
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
			t.Errorf("got %+v, want the difference and the ratio", r.Ratios)
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
		{Allow, answers(Tally{Denied: 1}), "the wrong answer"},
		{Deny, answers(Tally{Allowed: 1}), "the wrong answer"},
		{Allow, answers(Tally{Failed: 1}), "failed in"},
		{Allow, answers(Tally{Failed: 1, Err: errors.New("the reason")}), "the reason"},
		{Allow, answers(Tally{}), "answered 0 operations"},
		{Allow, mayFail, ""},
		{Deny, answers(Tally{Denied: 1}), ""},
	} {
		contest := Contest{Name: "c", Workers: 2, Want: c.want, Sides: []Side{c.side}}
		_, err := contest.Measure(t.Context(), Effort{Rounds: 1, Slice: time.Millisecond})
		if got := errText(err); c.says == "" && got != "" || !strings.Contains(got, c.says) {
			t.Errorf("got error %q, want an error that contains %q", got, c.says)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
