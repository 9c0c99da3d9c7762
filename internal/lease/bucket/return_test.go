package bucket

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/headgate/headgate"
)

// TestLateReturn: units that have refilled meanwhile do not come back. Else the bucket would admit 20 units at once.
func TestLateReturn(t *testing.T) {
	var b Bucket
	b.Burst(0, 10)
	b.Set(0, 10_000, never)
	take := func(now headgate.Instant) receipt {
		if !b.Take(now, 10) {
			t.Fatalf("10 units at %v do not pass", now)
		}
		return b.receipt(10)
	}
	first := take(0)
	second := take(5 * second)
	if b.giveBack(5*1e9, first); b.Has(5*1e9) != 0 {
		t.Errorf("%d units after a return of refilled ones, want 0", b.Has(5*1e9))
	}
	if b.giveBack(5*1e9, second); b.Has(5*1e9) != 10 {
		t.Errorf("%d units after a return of all, want 10", b.Has(5*1e9))
	}
	first = take(6 * 1e9)
	if b.giveBack(6.4*1e9, first); b.Has(6.4*1e9) != 10 {
		t.Errorf("%d units after a return of the 6 that are missing, want 10", b.Has(6.4*1e9))
	}
}

// debt is what a bucket misses, as the units that are to refill, in order. A Take is at the end, and so are the units that only a larger
// bucket misses.
type debt struct {
	twin

	owed []share
}

// share is the missing part of a Take; growth has the number -1.
type share struct {
	take int
	is   *big.Rat
}

// settle makes the sum of the shares what the bucket misses: units refill from the beginning.
func (d *debt) settle() {
	missing := new(big.Rat).Sub(d.size(), d.has)
	for i := range d.owed {
		missing.Sub(missing, d.owed[i].is)
	}
	for missing.Sign() < 0 {
		first := d.owed[0].is
		if paid := new(big.Rat).Neg(missing); paid.Cmp(first) < 0 {
			d.owed[0].is = new(big.Rat).Sub(first, paid)
			return
		}
		missing.Add(missing, first)
		d.owed = d.owed[1:]
	}
	if missing.Sign() > 0 {
		d.owed = append(d.owed, share{-1, missing})
	}
}

// giveBack returns the missing part of a Take.
func (d *debt) giveBack(take int) {
	for i, s := range d.owed {
		if s.take == take {
			d.has = new(big.Rat).Add(d.has, s.is)
			d.owed = append(d.owed[:i:i], d.owed[i+1:]...)
			return
		}
	}
}

// made is an admitted request.
type made struct {
	receipt receipt
	take    int
	spent   spent
}

// TestReturnsAsTwin compares returns with the definition. Each return is exact if the takes return in their order, under changing rates,
// or the last one first, under one rate. In any order a bucket never has more than the definition, and the requests that were made keep the bound of
// TestTwin.
func TestReturnsAsTwin(t *testing.T) {
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 20))
		order := seed % 3
		burst := 1 + r.Int64N(20)
		var b Bucket
		b.Burst(0, burst)
		d := &debt{twin: twin{has: rat(burst, 1), rate: rat(0, 1), burst: rat(burst, 1)}}
		integral, now := rat(0, 1), int64(0)
		var open []made
		var kept []spent
		for step := range 120 {
			passed := r.Int64N(1 + 1<<r.IntN(31))
			now += passed
			integral = new(big.Rat).Add(integral, new(big.Rat).Mul(d.rate, rat(passed, 1_000_000_000)))
			at := headgate.Instant(now)
			d.advance(now)
			d.settle()
			switch {
			case step == 0 || order != 1 && r.IntN(8) == 0:
				rate := r.Int64N(1 << (5 + r.IntN(14)))
				b.Set(at, rate, never)
				d.set(now, rate)
				d.settle()
			case r.IntN(2) == 0 && len(open) > 0:
				i := map[uint64]int{0: 0, 1: len(open) - 1, 2: r.IntN(len(open))}[order]
				b.giveBack(at, open[i].receipt)
				d.giveBack(open[i].take)
				open = append(open[:i:i], open[i+1:]...)
			case r.IntN(4) == 0 && len(open) > 0 && order == 2: // Made, so it never returns.
				i := r.IntN(len(open))
				kept = append(kept, open[i].spent)
				open = append(open[:i:i], open[i+1:]...)
			default:
				cost := 1 + r.Int64N(1<<r.IntN(5))
				if !b.Take(at, cost) {
					continue
				}
				if !d.take(now, cost) {
					t.Fatalf("seed %d, step %d: a cost of %d passes, which the definition refuses", seed, step, cost)
				}
				d.owed = append(d.owed, share{step, rat(cost, 1)})
				over := larger(new(big.Rat).Sub(rat(cost, 1), d.size()), rat(0, 1))
				open = append(open, made{b.receipt(cost), step, spent{integral, cost, d.size(), over}})
			}
			has := new(big.Rat).Add(rat(b.has.whole, 1), big.NewRat(int64(b.has.part), parts))
			if c := has.Cmp(d.has); c > 0 || c < 0 && order < 2 {
				t.Fatalf("seed %d, order %d, step %d: the bucket has %s units, the definition %s", seed, order, step, has.FloatString(12), d.has.FloatString(12))
			}
		}
		for _, m := range open {
			kept = append(kept, m.spent)
		}
		checkBound(t, seed, sorted(kept))
	}
}

// sorted sorts requests by their time.
func sorted(all []spent) []spent {
	slices.SortStableFunc(all, func(a, b spent) int { return a.integral.Cmp(b.integral) })
	return all
}
