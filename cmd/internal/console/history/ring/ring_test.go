package ring

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

// twin is the obvious slow form of a Ring without a bound: each second of each series in a map.
type twin struct {
	began, end int64
	counts     map[string]map[int64]uint64
}

func (w *twin) advance(end int64) {
	switch {
	case w.began == 0 || end < w.end-maxStepBack:
		*w = twin{began: end - 1, end: end, counts: map[string]map[int64]uint64{}}
	case end > w.end:
		w.end = end
	}
}

func (w *twin) add(name string, n uint64) {
	of, known := w.counts[name]
	if !known {
		of = map[int64]uint64{}
		w.counts[name] = of
	}
	of[w.end-1] += n
}

// step sums the seconds of a step.
func (w *twin) step(name string, start, length int64) (n int64) {
	for second := start; second < start+length; second++ {
		n += int64(w.counts[name][second])
	}
	return n
}

func series(names ...string) (all []*Series) {
	for _, name := range names {
		all = append(all, &Series{Name: Name{"rule", name, "refused"}})
	}
	return all
}

// compare compares all steps of all tiers with the twin.
func compare(t *testing.T, r *Ring, w *twin, all []*Series) {
	t.Helper()
	for tier := range tierCount {
		start, n := r.Span(tier, 0)
		if want := wanted(w, tier); n != want {
			t.Fatalf("%v has %d steps after %d seconds, want %d", tier, n, w.end-w.began, want)
		}
		if n > 0 && (start+int64(n)*tier.Step() > w.end || start+int64(n+1)*tier.Step() <= w.end) {
			t.Fatalf("%v ends at %d, and the clock shows %d", tier, start+int64(n)*tier.Step(), w.end)
		}
		for _, s := range all {
			for k, v := range r.Read(nil, s.Name.String(), tier, start, n) {
				at := start + int64(k)*tier.Step()
				if want := w.step(s.Name.String(), at, tier.Step()); v != want {
					t.Fatalf("%v of %v at %d is %d, want %d", tier, s.Name, at, v, want)
				}
			}
		}
	}
}

// wanted is the number of steps that have ended and began after the start.
func wanted(w *twin, tier Tier) int {
	n := 0
	for start := w.end / tier.Step() * tier.Step(); start-tier.Step() >= w.began; start -= tier.Step() {
		n++
	}
	if tier == Second {
		return min(n, int(tier.Steps()))
	}
	return min(n, int(tier.Steps())-1)
}

// TestTwin: a ring has the sums of the seconds, in all tiers, over more than a day, with wraps.
func TestTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r, w := New(100), &twin{}
	all := series("a", "b", "c")
	end := int64(1_700_000_000)
	for second := range 25 * 60 * 60 {
		end++
		r.Advance(end)
		w.advance(end)
		for i, s := range all {
			if random.IntN(4) <= i {
				n := random.Uint64N(1000)
				r.Add(s, n)
				w.add(s.Name.String(), n)
			}
		}
		if second < 700 && second%7 == 0 || second%5003 == 0 {
			compare(t, r, w, all)
		}
	}
	compare(t, r, w, all)
}

// sums adds up the raw steps of a tier for a metric, in all series.
func sums(r *Ring, tier Tier, metric string) (n uint64) {
	for i := range r.places {
		p := &r.places[i]
		if p.series == nil || p.series.Name.Metric != metric || p.series.Gauge {
			continue
		}
		for step := range tier.Steps() {
			n += uint64(r.chunks[i/lanes][tier.column(step*tier.Step())][i%lanes])
		}
	}
	return n
}

// TestSumsAreCounterDifferences: with fewer places than series, delays, and clocks that step, each tier has all counts since the start, as
// far as it reaches back.
func TestSumsAreCounterDifferences(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 7))
		r := New(8)
		var all []*Series
		for i := range 30 {
			all = append(all, &Series{Name: Name{"rule", fmt.Sprint(i), "refused"}})
		}
		end, counted := int64(1_700_000_000), uint64(0)
		r.Advance(end)
		for second := int64(0); second < secondSteps-10; {
			step := int64(1)
			switch random.IntN(20) {
			case 0:
				step = random.Int64N(5)
			case 1:
				step = -random.Int64N(3)
			}
			second += max(step, 0)
			end += step
			r.Advance(end)
			for range 10 {
				n := random.Uint64N(50)
				counted += n
				r.Add(all[random.IntN(1+random.IntN(len(all)))], n)
			}
		}
		for tier := range tierCount {
			if got := sums(r, tier, "refused"); got != counted {
				t.Errorf("seed %d: %v has %d, want %d", seed, tier, got, counted)
			}
		}
		if r.movable > 8 || len(r.names) > 9 {
			t.Errorf("seed %d: %d series, %d of them may move, want at most 8", seed, len(r.names), r.movable)
		}
	}
}

// TestStepBack: a clock that steps back far begins anew, and does not show old counts as new ones. A small step waits.
func TestStepBack(t *testing.T) {
	r, w := New(10), &twin{}
	all := series("a", "b")
	end := int64(1_700_000_000)
	tick := func(step int64, n uint64) {
		end += step
		r.Advance(end)
		w.advance(end)
		for _, s := range all {
			r.Add(s, n)
			w.add(s.Name.String(), n)
		}
	}
	for range 400 {
		tick(1, 3)
	}
	for _, step := range []int64{0, -1, -3, 1, 1, 1, 1, 1, 1} {
		tick(step, 5)
	}
	compare(t, r, w, all)
	tick(-3600, 7)
	if _, n := r.Span(TenSeconds, 0); n != 0 {
		t.Errorf("%d steps of ten seconds after the clock stepped back", n)
	}
	for range 400 {
		tick(1, 9)
	}
	compare(t, r, w, all)
}

// TestGaps: counts of a short delay are divided, and a long one has no data.
func TestGaps(t *testing.T) {
	r := New(10)
	s := series("a")[0]
	r.Advance(1000)
	r.Add(s, 1)
	r.Advance(1004)
	r.Add(s, 9)
	r.Advance(1020)
	r.Add(s, 5)
	start, n := r.Span(Second, 0)
	got := fmt.Sprint(start, r.Read(nil, "rule.a.refused", Second, start, n))
	if want := "999 [1 2 2 2 3 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 5]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r.Advance(1020 + 3*day)
	start, n = r.Span(FiveMinutes, 0)
	for k, v := range r.Read(nil, "rule.a.refused", FiveMinutes, start, n) {
		if v != NoData && (v != 0 || k < n-2) {
			t.Errorf("step %d of five minutes is %d after a gap of three days", k, v)
		}
	}
}

// TestGauges: a longer step has the last value in it.
func TestGauges(t *testing.T) {
	r := New(10)
	g := &Series{Name: Name{Metric: "in_flight"}, Gauge: true}
	for end := int64(1001); end <= 1030; end++ {
		r.Advance(end)
		r.Set(g, uint64(end-1000))
	}
	start, n := r.Span(TenSeconds, 0)
	if got := fmt.Sprint(start, r.Read(nil, "in_flight", TenSeconds, start, n)); got != "1000 [10 20 30]" {
		t.Errorf("got %s", got)
	}
	r.Advance(1031)
	r.Set(g, 0)
	if got := fmt.Sprint(r.Read(nil, "in_flight", Second, 1029, 2)); got != "[30 0]" {
		t.Errorf("got %s", got)
	}
}

// TestOthers: a busy series takes the place of the quietest, whose counts move into others. Both show what they know alone.
func TestOthers(t *testing.T) {
	r := New(2)
	all := series("quiet", "busy", "late")
	for end := int64(2001); end <= 2060; end++ {
		r.Advance(end)
		if end == 2005 {
			r.Add(all[0], 4)
		}
		r.Add(all[1], 100)
		if end > 2020 {
			r.Add(all[2], 50)
		}
	}
	if all[0].place != 0 || all[1].place == 0 || all[2].place == 0 {
		t.Fatalf("the places are %d, %d and %d, want none for the quiet series", all[0].place, all[1].place, all[2].place)
	}
	start, n := r.Span(TenSeconds, 2000)
	for name, want := range map[string]string{
		"rule.quiet.refused": "[-1 -1 -1 -1 -1 -1]",
		"rule.busy.refused":  "[1000 1000 1000 1000 1000 1000]",
		"rule.late.refused":  "[-1 -1 -1 500 500 500]",
		"others.refused":     "[4 0 500 0 0 0]",
	} {
		if got := fmt.Sprint(r.Read(nil, name, TenSeconds, start, n)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// TestGivenBack: a series without a value for a day gives its place back, and a new one starts empty there.
func TestGivenBack(t *testing.T) {
	r := New(1)
	all := series("a", "b")
	end := int64(1_700_000_000)
	r.Advance(end)
	r.Add(all[0], 1)
	for range day + 2*fiveMinutes + 1 {
		end++
		r.Advance(end)
	}
	if r.Series() != 0 || all[0].place != 0 {
		t.Fatalf("%d series after a day without counts", r.Series())
	}
	r.Add(all[1], 2)
	for tier := range tierCount {
		if got := sums(r, tier, "refused"); got != 2 {
			t.Errorf("%v has %d, want 2", tier, got)
		}
	}
}

// TestRuleComesBack: a series with the name of a former one goes on where it ended.
func TestRuleComesBack(t *testing.T) {
	r := New(2)
	former, next := series("a")[0], series("a")[0]
	for end := int64(3001); end <= 3010; end++ {
		r.Advance(end)
		if end <= 3005 {
			r.Add(former, 1)
		} else {
			r.Add(next, 10)
		}
	}
	if got := fmt.Sprint(r.Read(nil, "rule.a.refused", TenSeconds, 3000, 1)); got != "[55]" || former.place != 0 || r.Series() != 1 {
		t.Errorf("got %s with %d series", got, r.Series())
	}
}

// TestMemory compares 10,000 series with their figure.
func TestMemory(t *testing.T) {
	const number = 10_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := New(number)
	r.Advance(1000)
	all := make([]Series, number)
	for i := range all {
		all[i].Name = Name{"client", fmt.Sprintf("%0100d", i), "admitted"}
		r.Add(&all[i], 1)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	got := int64(after.HeapAlloc - before.HeapAlloc)
	t.Logf("%d series take %d bytes, %d each; bound %d", r.Series(), got, got/number, Bytes(number))
	if most := Bytes(number); got > most || got < most*7/10 {
		t.Errorf("%d series take %d bytes, and the formula says %d", number, got, most)
	}
	runtime.KeepAlive(all)
	runtime.KeepAlive(r)
}

func BenchmarkAdd(b *testing.B) {
	const number = 20_000
	r := New(number)
	all := make([]Series, number)
	for i := range all {
		all[i].Name = Name{"rule", fmt.Sprint(i), "passed"}
	}
	end := int64(1_700_000_000)
	b.ReportAllocs()
	for b.Loop() { // one second of 20,000 busy series
		end++
		r.Advance(end)
		for i := range all {
			r.Add(&all[i], 3)
		}
	}
}
