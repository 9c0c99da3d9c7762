package bucket

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

const second = headgate.Instant(time.Second)

// TestBucket is the story of one bucket whose lease changes. Rates are in units a second.
func TestBucket(t *testing.T) {
	var b Bucket
	b.Burst(0, 1)
	for i, step := range []struct {
		at   time.Duration
		rate int64 // a new rate; -1 keeps it
		cost int64 // a request; 0 is none
		pass bool
		wait time.Duration // after the request, for one of 1
		why  string
	}{
		{0, -1, 1, true, forever, "a new bucket has one unit"},
		{0, -1, 1, false, forever, "without a rate, there is no second one"},
		{0, 2, 1, false, 500 * time.Millisecond, "a lease of 2/s needs half a second for it"},
		{400 * time.Millisecond, -1, 1, false, 100 * time.Millisecond, "0.8 units"},
		{400 * time.Millisecond, 20, 1, false, 10 * time.Millisecond, "a larger lease keeps the 0.8 units, and fills faster"},
		{410 * time.Millisecond, -1, 1, true, 50 * time.Millisecond, "the tenth"},
		{time.Second, -1, 2, true, 50 * time.Millisecond, "20/s keep 2 units, although 11.8 were filled"},
		{2 * time.Second, 5, 1, true, 200 * time.Millisecond, "a smaller lease clips the 2 units to 1"},
		{3 * time.Second, -1, 4, true, 800 * time.Millisecond, "a costly request takes from a full bucket"},
		{3800 * time.Millisecond, -1, 1, true, 200 * time.Millisecond, "and the next one waits until its units are back"},
		{3800 * time.Millisecond, 0, 1, false, forever, "nothing without a lease"},
		{9 * time.Second, -1, 1, false, forever, "whatever time passes"},
	} {
		now := headgate.Instant(step.at)
		if step.rate >= 0 {
			b.Set(now, 1000*step.rate, never)
		}
		if step.cost > 0 && b.Take(now, step.cost) != step.pass {
			t.Errorf("step %d: passes: %v, want %v: %s", i, !step.pass, step.pass, step.why)
		}
		if wait := b.Wait(now, 1); wait != step.wait {
			t.Errorf("step %d: a wait of %v, want %v: %s", i, wait, step.wait, step.why)
		}
	}
}

// TestEndOfLease: a rate ends by itself, and fills nothing afterwards.
func TestEndOfLease(t *testing.T) {
	var b Bucket
	b.Burst(0, 10)
	b.Take(0, 10)
	b.Set(0, 2000, 3*second)
	if b.Rate(3*second-1) != 2000 || b.Rate(3*second) != 0 || b.Has(100*second) != 6 || b.Wait(100*second, 7) != forever {
		t.Errorf("%d units after the end, want 6", b.Has(100*second))
	}
	if b.Return(100*second, 3); b.Has(100*second) != 9 {
		t.Errorf("%d units after a return of 3, want 9", b.Has(100*second))
	}
	if b.Return(100*second, headgate.MaxUnits); b.Has(50*second) != 10 {
		t.Errorf("%d units after a large return, want 10", b.Has(50*second))
	}
}

// twin is the definition of a bucket in fractions.
type twin struct {
	has, rate, burst *big.Rat
	at               int64
}

func rat(n, d int64) *big.Rat { return big.NewRat(n, d) }

func smaller(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func larger(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

func (w *twin) size() *big.Rat {
	tenth := new(big.Rat).Quo(w.rate, rat(10, 1))
	if tenth.Cmp(w.burst) < 0 {
		return w.burst
	}
	return tenth
}

func (w *twin) advance(now int64) {
	more := new(big.Rat).Mul(w.rate, rat(now-w.at, 1_000_000_000))
	w.has, w.at = smaller(more.Add(more, w.has), w.size()), now
}

func (w *twin) set(now, thousandths int64) {
	w.advance(now)
	w.rate = rat(thousandths, 1000)
	w.has = smaller(w.has, w.size())
}

func (w *twin) take(now, cost int64) bool {
	w.advance(now)
	if w.has.Cmp(smaller(rat(cost, 1), w.size())) < 0 {
		return false
	}
	w.has = new(big.Rat).Sub(w.has, rat(cost, 1))
	return true
}

// spent is one admitted request: its cost, the size of the bucket, what the cost has more, and the integral of the rate until
// then.
type spent struct {
	integral   *big.Rat
	cost       int64
	size, over *big.Rat
}

// TestTwin compares buckets under changing rates with the definition, and checks the bound: in any time, at most the
// integral of the rate, one full bucket, and what one request costs more than a full bucket has.
func TestTwin(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 19))
		burst := 1 + r.Int64N(3)
		var b Bucket
		b.Burst(0, burst)
		w := &twin{has: rat(burst, 1), rate: rat(0, 1), burst: rat(burst, 1)}
		integral, all := rat(0, 1), []spent(nil)
		now := int64(0)
		for range 60 {
			passed := r.Int64N(1 + 1<<r.IntN(33))
			now += passed
			integral = new(big.Rat).Add(integral, new(big.Rat).Mul(w.rate, rat(passed, 1_000_000_000)))
			if r.IntN(4) == 0 {
				rate := r.Int64N(1 << r.IntN(20))
				b.Set(headgate.Instant(now), rate, never)
				w.set(now, rate)
			}
			cost := 1 + r.Int64N(1<<r.IntN(5))
			wait := b.Wait(headgate.Instant(now), cost)
			got, want := b.Take(headgate.Instant(now), cost), w.take(now, cost)
			if got != want || got != (wait == 0) {
				t.Fatalf("seed %d: a cost of %d at %d: %v after a wait of %v, want %v", seed, cost, now, got, wait, want)
			}
			if got {
				over := new(big.Rat).Sub(rat(cost, 1), w.size())
				all = append(all, spent{integral, cost, w.size(), larger(over, rat(0, 1))})
			}
		}
		checkBound(t, seed, all)
	}
}

func checkBound(t *testing.T, seed uint64, all []spent) {
	t.Helper()
	for i := range all {
		sum, most, over := rat(0, 1), rat(0, 1), rat(0, 1)
		for j := i; j < len(all); j++ {
			sum.Add(sum, rat(all[j].cost, 1))
			most, over = larger(most, all[j].size), larger(over, all[j].over)
			bound := new(big.Rat).Sub(all[j].integral, all[i].integral)
			if bound.Add(bound, most).Add(bound, over); sum.Cmp(bound) > 0 {
				t.Fatalf("seed %d: %v units from request %d to %d, the bound is %v", seed, sum.FloatString(3), i, j, bound.FloatString(3))
			}
		}
	}
}

// FuzzAmounts compares the times of amounts with their definition.
func FuzzAmounts(f *testing.F) {
	f.Add(int64(1), uint64(0), int64(3))
	f.Add(int64(1<<53), uint64(parts-1), int64(1<<40))
	f.Fuzz(func(t *testing.T, whole int64, part uint64, rate int64) {
		a := amount{whole & (1<<54 - 1), part % parts}
		rate &= 1<<40 - 1
		d := a.at(rate)
		if rate == 0 {
			return
		}
		if d != forever {
			if got := filled(rate, d, 1<<60); got.less(a) {
				t.Errorf("%+v at %d takes %v, in which %+v are filled", a, rate, d, got)
			}
		}
		if d > 0 && d != forever {
			if got := filled(rate, d-1, 1<<60); !got.less(a) {
				t.Errorf("%+v at %d takes %v, and less is enough", a, rate, d)
			}
		}
	})
}
