package schedule

import (
	"math/big"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// FuzzPlan checks that a plan of any numbers is refused or agrees with the twin.
func FuzzPlan(f *testing.F) {
	f.Add(int64(10), int64(time.Second), 96, 95, int64(0), int64(9), int64(1), 50)
	f.Add(int64(MaxLimit), int64(MaxPer), MaxInstances, 0, int64(-1)<<63, int64(1)<<62, int64(1)<<62, 1)
	f.Add(int64(0), int64(MinPer), 1, 0, int64(1)<<62, int64(5), int64(-1), -1)
	f.Add(int64(-1), int64(0), 0, -1, int64(3), int64(0), int64(0), 1000)
	f.Fuzz(func(t *testing.T, limit, per int64, instances, index int, w, more, need int64, percent int) {
		p, err := Even(limit, time.Duration(per), instances, index)
		made := Plan{Limit: limit, Per: time.Duration(per), Instances: instances, Index: index}
		if (err == nil) != (made.Check() == nil) {
			t.Fatalf("plan %+v: Even returns %v, and Check disagrees", made, err)
		}
		if err != nil {
			p = Plan{}
		}
		if w == 1<<63-1 {
			w--
		}
		to := plus(w, max(more, 0))
		part, braked, sum := p.Part(w), p.Braked(w, percent), p.Sum(w, to)
		if part < 0 || part > p.Most() || braked < 0 || braked > part {
			t.Fatalf("plan %+v: the part %d is above the maximum %d in window %d, or the braked part %d is above the part", p, part, p.Most(), w, braked)
		}
		if err == nil && sum != fits(twinSum(p, w, to)) {
			t.Fatalf("plan %+v: Sum returns %d for windows %d to %d, which differs from the twin", p, sum, w, to)
		}
		if last, before, ok := p.After(w, need); ok && need > 0 {
			all := new(big.Int).Add(big.NewInt(before), big.NewInt(p.Part(last)))
			if before >= need || all.Cmp(big.NewInt(need)) < 0 || before != p.Sum(w, last) {
				t.Fatalf("plan %+v: After puts %d units since window %d into window %d, with %d before, which Sum contradicts", p, need, w, last, before)
			}
		}
		if at := p.Start(w); err == nil && at > p.Start(w-1) && at < p.Start(w+1) && (p.Window(at) != w || p.Window(at-1) != w-1) {
			t.Fatalf("plan %+v: Window does not return window %d for its start %d", p, w, at)
		}
	})
}

// FuzzTimeline uses any times, and checks that no part is above the part of its newest plan.
func FuzzTimeline(f *testing.F) {
	f.Add(int64(0), int64(5), int64(0), int64(9), int64(3), int64(3))
	f.Add(int64(1)<<62, int64(-1)<<63, int64(most), int64(-1)<<63, int64(-1)<<63, int64(most))
	f.Fuzz(func(t *testing.T, from1, from2, settled, wall, mono, need int64) {
		var line Timeline
		plans := fleet(t, 10, 3)
		line.Add(Change{Plan: plans[0], From: headgate.Instant(from1), Revision: 1})
		line.Add(Change{Plan: plans[2], From: headgate.Instant(from2), Settled: headgate.Instant(settled), Revision: 2})
		for _, at := range []int64{wall, mono, wall} {
			w, ok := line.At(headgate.Instant(at), headgate.Instant(mono))
			if ok && (w.Part < 0 || w.Part > w.Plan.Part(w.Number) || w.Number != w.Plan.Window(headgate.Instant(at))) {
				t.Fatalf("the window %+v has a part above its plan's, or the wrong number", w)
			}
			if start, before, p, ok := line.After(headgate.Instant(at), need); ok && need > 0 && (before < 0 || before >= need || p.Window(start) < p.Window(headgate.Instant(at))) {
				t.Fatalf("After puts %d units since %d at %d, with %d before, which is inconsistent", need, at, start, before)
			}
		}
	})
}

// FuzzLine checks lines of any numbers.
func FuzzLine(f *testing.F) {
	f.Add(int64(5), int64(100), int64(0), int64(1), int64(50), int64(2), int64(70))
	f.Add(int64(1)<<62, int64(1), int64(-1)<<63, int64(most), int64(most), int64(0), int64(-1))
	f.Add(int64(5), int64(100), int64(0), int64(1), int64(50), int64(-9), int64(70))
	f.Fuzz(func(t *testing.T, part, length, phase, credit, first, given, then int64) {
		l := Line{Part: part, Length: length, Phase: phase, Credit: credit}
		l.Idle(first, given)
		open := l.Open(first)
		if open < 0 || open > max(part, 0) || l.lapsed < 0 || l.lapsed > l.turns(first) {
			t.Fatalf("line %+v: %d permits are open, out of bounds", l, open)
		}
		if n := max(open, 1); part > 0 && length > 0 && n <= part {
			if at := l.When(n); at < 1<<62 && l.Open(at) < n || at > -1<<62 && l.Open(at-1) >= n {
				t.Fatalf("line %+v: the method When returns a wrong time for %d permits: %d", l, n, at)
			}
		}
		if then > first && l.Open(then) < open {
			t.Fatalf("line %+v: fewer permits are open at %d than at %d", l, then, first)
		}
	})
}
