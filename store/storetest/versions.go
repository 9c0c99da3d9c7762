package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/limit/twin"
)

// pair is two versions of one limit that are in use on one key at once, as in a rolling
// deploy of a changed limit.
type pair struct {
	name string
	a, b headgate.Policy
	// every is the time between two requests of a named pair.
	every time.Duration
}

// alike reports whether the versions count in one state. The larger limit then holds;
// otherwise their sum.
func (p *pair) alike() bool { return limit.FamilyOf(p.a) == limit.FamilyOf(p.b) }

// constant is the allowed deviation from the bound: the larger Burst or Count, and the units
// that the larger MaxWait lets requests book ahead.
func (p *pair) constant() int64 { return max(most(p.a), most(p.b)) }

// most is the number of units that a policy admits at once.
func most(p headgate.Policy) int64 {
	return limit.Room(p) + int64(p.MaxWait)*p.Limit.Count/int64(p.Limit.Per)
}

// admits bounds the units that the policy alone admits between two times, both included.
func admits(p headgate.Policy, from, to headgate.Instant) int64 {
	count, per := p.Limit.Count, headgate.Instant(p.Limit.Per)
	switch p.Algorithm {
	case headgate.FixedWindow:
		return count * int64(to/per-from/per+1)
	case headgate.SlidingLog:
		return count * int64((to-from)/per+1)
	case headgate.SlidingWindow:
		// At each take, N neighbouring sub-windows hold at most Count units.
		n := headgate.Instant(p.SubWindows)
		touched := to*n/per - from*n/per + 1
		return count * int64((touched+n-1)/n)
	default:
		return most(p) + int64(to-from)*count/int64(per)
	}
}

// bound bounds the units that both versions admit together between two times.
func (p *pair) bound(from, to headgate.Instant) int64 {
	a, b := admits(p.a, from, to), admits(p.b, from, to)
	if p.alike() {
		return max(a, b) + p.constant()
	}
	return a + b + p.constant()
}

// namedPairs are pairs that once admitted fifteen times the limit, or nothing.
func namedPairs() []pair {
	policy := func(a headgate.Algorithm, count int64, per time.Duration, n int) headgate.Policy {
		return headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: count, Per: per}, SubWindows: n}
	}
	token := func(count, burst int64) headgate.Policy {
		return headgate.Policy{Limit: headgate.Limit{Count: count, Per: time.Second, Burst: burst}}
	}
	leaky := func(count, burst int64) headgate.Policy {
		p := token(count, burst)
		p.Algorithm = headgate.LeakyBucket
		return p
	}
	const second, quick, slow = time.Second, time.Millisecond, 4 * time.Millisecond
	sliding := policy(headgate.SlidingWindow, 100, second, 10)
	return []pair{
		{"token_bucket 100/s and 120/s", token(100, 0), token(120, 0), quick},
		{"token_bucket, burst 10 and 20", token(100, 10), token(100, 20), quick},
		{"token_bucket 100/s and 1000/s", token(100, 0), token(1000, 0), quick / 4},
		{"leaky_bucket 100/s and 120/s", leaky(100, 10), leaky(120, 20), quick},
		{"sliding_window 100/s and 120/s", sliding, policy(headgate.SlidingWindow, 120, second, 10), slow},
		{"sliding_window, N 10 and 5", sliding, policy(headgate.SlidingWindow, 100, second, 5), slow},
		{
			"sliding_window, N 1 and 256",
			policy(headgate.SlidingWindow, 100, second, 1), policy(headgate.SlidingWindow, 100, second, 256), slow,
		},
		{"sliding_window 100/s and 200/2s", sliding, policy(headgate.SlidingWindow, 200, 2*second, 10), slow},
		{"token_bucket and sliding_window", token(100, 0), sliding, quick},
		{"token_bucket and fixed_window", token(100, 0), policy(headgate.FixedWindow, 100, second, 0), quick},
		{
			"fixed_window 100/s and 6000/m",
			policy(headgate.FixedWindow, 100, second, 0), policy(headgate.FixedWindow, 6000, 60*second, 0), slow,
		},
		{"sliding_log 100/s and 120/s", policy(headgate.SlidingLog, 100, second, 0), policy(headgate.SlidingLog, 120, second, 0), quick},
		{"fixed_window 100/s and 120/s", policy(headgate.FixedWindow, 100, second, 0), policy(headgate.FixedWindow, 120, second, 0), quick},
	}
}

// Rounds sets the number of requests for each named pair of versions. The versions take
// turns. The default is 1,600, and 200 with the race detector or -short. Each kind of random trace
// runs once for 200 rounds, but at most eight times.
func Rounds(n int) Option { return func(s *suite) { s.rounds = n } }

// defaultRounds is fewer where a round takes long, and in quick tests: the race detector slows one goroutine down tenfold.
func defaultRounds() int {
	if raced || testing.Short() {
		return 200
	}
	return 1600
}

// testTwoVersions uses two versions of one limit on one key.
func (s *suite) testTwoVersions(t *testing.T) {
	for _, p := range namedPairs() {
		if s.without[p.a.Algorithm] || s.without[p.b.Algorithm] {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			v := s.versions(t, p, 1)
			for i := range s.rounds {
				v.clock.Advance(p.every)
				v.take(i%2, 1, headgate.Take)
			}
			v.check(true)
		})
	}
	for seed := range uint64(min(s.rounds/40, 200)) {
		s.randomVersions(t, rand.New(rand.NewPCG(seed, 41)), seed)
	}
}

// randomVersions uses a random pair in random order: Take, Peek and Return.
func (s *suite) randomVersions(t *testing.T, r *rand.Rand, seed uint64) {
	t.Helper()
	p := s.randomPair(r)
	t.Run(fmt.Sprintf("random %d", seed), func(t *testing.T) {
		greatest := int64(1)
		if seed%2 == 1 {
			greatest = 4
		}
		v := s.versions(t, p, greatest)
		turns, mode := 1+r.IntN(30), headgate.Take
		if p.a.MaxWait > 0 {
			mode = headgate.Book
		}
		for i := range 200 {
			v.clock.Advance(microseconds(r) / 4)
			which := i / turns % 2
			switch r.IntN(12) {
			case 0:
				v.take(which, 1+r.Int64N(greatest), headgate.Peek)
			case 1:
				if greatest > 1 {
					v.giveBack(r)
				}
			case 2:
				v.take(1-which, 1+r.Int64N(greatest), mode)
			default:
				v.take(which, 1+r.Int64N(greatest), mode)
			}
		}
		v.check(greatest == 1)
	})
}

// randomPair draws two versions, more often than not of one family.
func (s *suite) randomPair(r *rand.Rand) pair {
	offered := s.offered(headgate.Limit{Count: 1, Per: time.Second})
	vary := func(p headgate.Policy) headgate.Policy {
		p.Limit.Count = 1 + r.Int64N(40)
		switch p.Algorithm {
		case headgate.TokenBucket, headgate.LeakyBucket:
			p.Limit.Burst = 1 + r.Int64N(30)
		case headgate.SlidingWindow:
			p.SubWindows = 1 + r.IntN(12)
		default: // The other algorithms have only a Count.
		}
		return p
	}
	p := pair{a: offered[r.IntN(len(offered))]}
	p.b = p.a
	if r.IntN(3) == 0 {
		p.b = offered[r.IntN(len(offered))]
		p.b.Limit.Per *= time.Duration(1 + r.IntN(3))
	} else if p.a.Algorithm <= headgate.LeakyBucket && r.IntN(3) == 0 {
		p.a.MaxWait, p.b.MaxWait = 100*time.Millisecond, 300*time.Millisecond
	}
	p.a, p.b = vary(p.a), vary(p.b)
	return p
}

// admission is the number of units that were admitted at one time and not returned.
type admission struct {
	at      headgate.Instant
	units   int64
	receipt headgate.Receipt
}

// versions is one key under two versions, beside each version alone.
type versions struct {
	*bench
	pair

	ids      [2]headgate.PolicyID
	alone    [2]twin.Key
	passed   [2]int64 // The units that each version admitted alone.
	admitted int64
	all      []admission
	// short is the largest shortfall against the stricter version alone, in units.
	short int64
}

func (s *suite) versions(t *testing.T, p pair, greatest int64) *versions {
	t.Helper()
	v := &versions{bench: s.bench(t), pair: p}
	v.ids = [2]headgate.PolicyID{v.prepare(p.a), v.prepare(p.b)}
	if greatest == 1 {
		v.alone = [2]twin.Key{twin.New(p.a), twin.New(p.b)}
	}
	return v
}

// take takes cost under one of the versions.
func (v *versions) take(which int, cost int64, mode headgate.OpKind) {
	v.t.Helper()
	d := v.apply(headgate.Op{Key: "k", Policy: v.ids[which], Cost: cost, Kind: mode})[0]
	if mode == headgate.Peek {
		return
	}
	if d.Verdict != headgate.Deny {
		v.all = append(v.all, admission{v.clock.Now(), cost, d.Receipt})
		v.admitted += cost
	}
	if v.alone[0] == nil {
		return
	}
	for i, alone := range v.alone {
		if alone.Do(v.clock.Now(), cost, mode).Verdict != headgate.Deny {
			v.passed[i] += cost
		}
	}
	v.short = max(v.short, min(v.passed[0], v.passed[1])-v.admitted)
}

// giveBack returns one of the latest receipts.
func (v *versions) giveBack(r *rand.Rand) {
	v.t.Helper()
	if len(v.all) == 0 {
		return
	}
	i := len(v.all) - 1 - r.IntN(min(len(v.all), 5))
	v.bench.giveBack(v.all[i].receipt)
	v.all[i].units = 0
}

// check compares every interval with the bound. With costs of 1, it also compares every time
// with the stricter version alone.
func (v *versions) check(ones bool) {
	v.t.Helper()
	for i := range v.all {
		sum := int64(0)
		for j := i; j < len(v.all); j++ {
			sum += v.all[j].units
			if most := v.bound(v.all[i].at, v.all[j].at); sum > most {
				v.t.Fatalf("%+v and %+v: %d admitted in %v, more than %d", v.a, v.b, sum, v.all[j].at.Sub(v.all[i].at), most)
			}
		}
	}
	if ones && v.short > v.constant() {
		v.t.Fatalf("%+v and %+v: up to %d fewer admitted than by the stricter alone, more than %d", v.a, v.b, v.short, v.constant())
	}
	if v.admitted == 0 {
		v.t.Error("nothing was admitted: the traffic shows nothing")
	}
}
