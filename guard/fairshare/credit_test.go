package fairshare

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// admittedAt is the units admitted at a time.
type admittedAt struct {
	at    headgate.Instant
	units int64
}

// mostIn returns the largest number of units in any interval (t-w, t].
func mostIn(all []admittedAt, w time.Duration) (most int64) {
	from, sum := 0, int64(0)
	for _, a := range all {
		for sum += a.units; all[from].at <= a.at.Add(-w); from++ {
			sum -= all[from].units
		}
		most = max(most, sum)
	}
	return most
}

// visit is a cycle beside which a fifth client arrives.
type visit struct {
	says   string
	config func(*Config)
	demand int64 // of each of the four clients, at the start of each cycle
	share  int64 // the newcomer's default share
}

func visits() []visit {
	weights := func(reclaim Reclaim) func(*Config) {
		return func(c *Config) { c.Weights, c.Reclaim = pinned("A B C D new"), reclaim }
	}
	return []visit{
		{"trusted names", func(c *Config) { c.TrustNames = true }, 10, 8},
		{"trusted names, a flood", func(c *Config) { c.TrustNames = true }, 100, 8},
		{"trusted names, next_cycle", func(c *Config) { c.TrustNames, c.Reclaim = true, NextCycle }, 100, 8},
		{"trusted names beside weights", func(c *Config) {
			c.TrustNames, c.Weights = true, map[string]int64{"A": 4, "B": 1}
		}, 40, 5},
		{"in weights", weights(AtOnce), 100, 8},
		{"in weights, next_cycle", weights(NextCycle), 100, 8},
		{"in weights with weight 4", func(c *Config) {
			c.Weights, c.Reclaim = pinned("A B C D"), NextCycle
			c.Weights["new"] = 4
		}, 100, 20},
	}
}

// TestNewcomerIsAdmitted has four clients use all units at the start of each cycle. A fifth
// client arrives at any time, and tries ten times in a tenth of a cycle. It must be admitted
// within a tenth of a cycle, and then have its default share. No interval of a cycle's length may admit
// more than the capacity and this share.
func TestNewcomerIsAdmitted(t *testing.T) {
	const tick, ticks = storyCycle / 100, 100
	for _, s := range visits() {
		for _, warm := range []int{0, 3} {
			for come := 1; come < ticks; come += 7 {
				l := storyOf(t, plain(s.config))
				var all []admittedAt
				var early, cycle, next int64
				first := -1
				for i := range (warm + 3) * ticks {
					now, after := storyStart.Add(tick*time.Duration(i)), i-warm*ticks-come
					take := func(name string) (n int64) {
						if d, _ := l.Take(now, Request{Client: name}); d.Verdict == headgate.Allow {
							n = 1
							all = append(all, admittedAt{now, 1})
						}
						return n
					}
					for k := range s.demand * 4 {
						if i%ticks == 0 || k < 4 {
							take(string(rune('A' + k%4)))
						}
					}
					if after < 0 {
						continue
					}
					n := take("new") + take("new")
					if n > 0 && first < 0 {
						first = after
					}
					if after <= ticks/arrivalPart {
						early += n
					}
					if after < ticks {
						cycle += n
					}
					if i/ticks == warm+1 {
						next += n
					}
				}
				says := fmt.Sprintf("%s, after %d cycles and %d %%", s.says, warm, come)
				if first < 0 || first > ticks/arrivalPart {
					t.Errorf("%s: first admitted after %d hundredths of a cycle, want at most 10", says, first)
				}
				entitled := s.share * int64(ticks-come) / ticks
				if want := min(s.share, 2*ticks/arrivalPart); cycle < want || next < want || early < min(want, entitled) {
					t.Errorf("%s: %d units in the first tenth, %d in the first cycle's length and %d in the next cycle, want %d", says, early, cycle, next, want)
				}
				if most := mostIn(all, storyCycle); most > 40+s.share {
					t.Errorf("%s: %d units in an interval of a cycle's length, want at most %d", says, most, 40+s.share)
				}
			}
		}
	}
}

// TestCreditAgainstList compares the credit with a list of its uses. In any interval of a
// cycle's length, newcomers use at most the largest default share among them. The credit
// is available again after a cycle and one slot.
func TestCreditAgainstList(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 14))
		w := time.Duration(1+r.Int64N(1000)) * 17 * time.Microsecond
		now := headgate.Instant(r.Int64N(int64(time.Hour)) - int64(time.Hour)/2)
		k, last := &credit{}, headgate.Instant(0)
		k.restart(now, w)
		share := 1 + r.Int64N(30)
		var all []admittedAt
		for range 2000 {
			now = now.Add(time.Duration(r.Int64N(int64(w) / 20)))
			if r.IntN(50) == 0 {
				now = now.Add(w)
			}
			k.advance(now)
			n := 1 + r.Int64N(3)
			if k.used+n <= max(share, k.limit()) {
				k.take(n, share)
				all, last = append(all, admittedAt{now, n}), now
			} else if now.Sub(last) > w+k.width && n <= share {
				t.Fatalf("seed %d: %d units are refused %v after the last use, with %d of %d used", seed, n, now.Sub(last), k.used, share)
			}
		}
		if most := mostIn(all, w); most > share || most < share/2 {
			t.Fatalf("seed %d: newcomers use %d units in a cycle's length, want at most %d and not much less", seed, most, share)
		}
	}
}

// TestInventedNamesGetNoCredit checks that names that are not trusted use no unit beyond the
// capacity, end no cycle, and leave the credit to a new client of Weights.
func TestInventedNamesGetNoCredit(t *testing.T) {
	for _, reclaim := range Reclaims() {
		l := storyOf(t, plain(func(c *Config) { c.Weights, c.Reclaim = pinned("A B C D new"), reclaim }))
		sum, served := int64(0), int64(0)
		take := func(now headgate.Instant, name string) int64 {
			if d, _ := l.Take(now, Request{Client: name}); d.Verdict == headgate.Allow {
				sum++
				return 1
			}
			return 0
		}
		number := l.Shares(storyStart).Cycle
		for i := range 1000 {
			now := storyStart.Add(cycles(1 + float64(i)/1000))
			for _, name := range []string{"A", "B", "C", "D"} {
				for range 10 {
					take(now, name)
				}
			}
			take(now, fmt.Sprint("invented-", i))
		}
		if s := l.Shares(storyStart.Add(cycles(1.9999))); sum > 40 || s.Cycle != number+1 || l.credit.used != 0 {
			t.Errorf("%v: %d units beside invented names in cycle %d, %d of them on credit; want at most 40 in cycle %d", reclaim, sum, s.Cycle, l.credit.used, number+1)
		}
		sum = 0
		for i := range 1000 {
			now := storyStart.Add(cycles(2 + float64(i)/1000))
			for _, name := range []string{"A", "B", "C", "D"} {
				for range 10 {
					take(now, name)
				}
			}
			take(now, fmt.Sprint("invented-again-", i))
			if i > 100 {
				served += take(now, "new")
			}
		}
		if fair := fairOf(l, "new"); served < fair || fair < 5 || sum > 40+fair {
			t.Errorf("%v: a new client of Weights gets %d units and all get %d, want its share of %d and at most this share above 40", reclaim, served, sum, fair)
		}
	}
}

// TestHeldUnitsBesideCredit: a newcomer uses the credit late in a cycle, and a second one early in the next. Beyond the
// late units, all openings and the credit, the first one gets units early only as far as an interval has at most the capacity and one
// default share.
func TestHeldUnitsBesideCredit(t *testing.T) {
	for late := range int64(11) { // units of others at the end of the cycle
		for second := range int64(5) {
			l := storyOf(t, plain(func(c *Config) { c.TrustNames = true }))
			var all []admittedAt
			take := func(at float64, name string, cost int64) (n int64) {
				now := storyStart.Add(cycles(at))
				if d, _ := l.Take(now, Request{Client: name, Cost: cost}); d.Verdict == headgate.Allow {
					n = cost
					all = append(all, admittedAt{now, n})
				}
				return n
			}
			flood := func(at float64, most int64) {
				for n := int64(0); n < most; {
					before := n
					for _, name := range []string{"A", "B", "C", "D"} {
						if n < most {
							n += take(at, name, 1)
						}
					}
					if n == before {
						return
					}
				}
			}
			for cycle := range 3 {
				flood(float64(cycle), 40)
			}
			flood(3, 40-late)
			flood(3.9, late)
			first := take(3.95, "first", 4)
			flood(4, 40)
			if second > 0 {
				take(4.05, "second", second)
			}
			for range 8 {
				take(4.06, "first", 1)
			}
			// Without early units, an interval has the late units, 36 opening units, and the credit of both.
			if most, want := mostIn(all, storyCycle), max(48, late+36+4+second); first != 4 || most > want {
				t.Errorf("%d late units, then %d and %d of newcomers: %d in an interval of a cycle's length, want at most %d", late, first, second, most, want)
			}
		}
	}
}

// TestCreditIsReturned checks that units of a request that a rule refused go back to the
// credit, and count neither as admitted nor as demand.
func TestCreditIsReturned(t *testing.T) {
	l := storyOf(t, plain(func(c *Config) { c.TrustNames = true }))
	for range 40 {
		l.Take(storyStart, Request{Client: "A"})
	}
	now := storyStart.Add(cycles(0.2))
	for i := range 100 {
		d, receipt := l.Take(now, Request{Client: "new", Cost: 5})
		if d.Verdict != headgate.Allow || !receipt.onCredit() || l.credit.used != 5 {
			t.Fatalf("attempt %d: %+v with %d units on credit, want an admitted request", i, d, l.credit.used)
		}
		l.Return(receipt)
		if s := l.Shares(now).Clients[1]; s.Client != "new" || s.Admitted != 0 || s.Seen != 0 || l.credit.used != 0 {
			t.Fatalf("attempt %d: after the return the newcomer has %+v, with %d units on credit", i, s, l.credit.used)
		}
	}
	_, receipt := l.Take(now, Request{Client: "new", Cost: 5})
	l.Take(now.Add(storyCycle), Request{Client: "A"})
	l.Return(receipt)
	if l.credit.used != 5 {
		t.Errorf("%d units on credit after a return in the next cycle, want 5", l.credit.used)
	}
}

// TestNewcomerRetriesSoon checks the RetryAfter of a newcomer: a tenth of a cycle after its
// arrival while the credit has units, and the next cycle otherwise.
func TestNewcomerRetriesSoon(t *testing.T) {
	l := storyOf(t, plain(func(c *Config) { c.TrustNames = true }))
	for range 40 {
		l.Take(storyStart, Request{Client: "A"})
	}
	take := func(at float64) headgate.Decision {
		d, _ := l.Take(storyStart.Add(cycles(at)), Request{Client: "new"})
		return d
	}
	if d := take(0.2); d.Verdict != headgate.Allow || d.Limit != 20 || d.Remaining != 19 {
		t.Errorf("the first request: %+v, want 19 of 20 units remaining", d)
	}
	for range 2 {
		if d := take(0.2); d.Verdict != headgate.Deny || d.RetryAfter != storyCycle/arrivalPart {
			t.Errorf("the second request at once: %+v, want a retry in a tenth of a cycle", d)
		}
	}
	for n := range 19 {
		if d := take(0.3); d.Verdict != headgate.Allow {
			t.Errorf("request %d after a tenth of a cycle: %+v, want it admitted", n+2, d)
		}
	}
	d := take(0.3)
	checkRetry(t, &d, storyCycle)
}

// TestNewcomersInParallel has newcomers arrive in parallel, with reloads in between. The
// admitted units never exceed the capacity and one default share.
func TestNewcomersInParallel(t *testing.T) {
	for _, reclaim := range Reclaims() {
		for range rounds(20) {
			config := plain(func(c *Config) { c.TrustNames, c.Reclaim, c.Capacity, c.NewClientsPerCycle = true, reclaim, 1000, 100 })
			l := storyOf(t, config)
			var admitted, first atomic.Int64
			l.Take(storyStart, Request{Client: "A", Cost: 1000})
			var served [20]bool
			for n := range 200 {
				now := storyStart.Add(cycles(0.2 + float64(n)/1000))
				var working sync.WaitGroup
				for i := range served {
					working.Go(func() {
						d, receipt := l.Take(now, Request{Client: fmt.Sprint("new-", i)})
						if d.Verdict == headgate.Allow && n%7 == 3 {
							l.Return(receipt)
						} else if d.Verdict == headgate.Allow {
							admitted.Add(1)
							served[i] = true
						}
					})
				}
				if n%50 == 0 {
					if err := l.Reload(now, config); err != nil {
						t.Error(err)
					}
				}
				working.Wait()
			}
			for _, is := range served {
				if is {
					first.Add(1)
				}
			}
			if admitted.Load() > 500 || first.Load() != 20 {
				t.Fatalf("%v: %d newcomers use %d units, want all 20 and at most 500, the share of the first", reclaim, first.Load(), admitted.Load())
			}
			if b, fault := ledgerOf(l); fault != "" || b.used < 1000+admitted.Load() || b.sum() != 1000+l.credit.inCycle {
				t.Fatalf("%v: %d units are used, but the limiter has %+v %s", reclaim, admitted.Load(), b, fault)
			}
		}
	}
}

// TestCreditAllocatesNothing checks that a newcomer's requests allocate nothing, on credit and
// refused.
func TestCreditAllocatesNothing(t *testing.T) {
	l := storyOf(t, plain(func(c *Config) { c.TrustNames, c.Capacity = true, 1_000_000 }))
	l.Take(storyStart, Request{Client: "A", Cost: 1_000_000})
	now := storyStart.Add(cycles(0.2))
	counts := [2]int{}
	take := func() {
		now = now.Add(10 * time.Microsecond)
		d, receipt := l.Take(now, Request{Client: "new", Cost: 1000})
		if d.Verdict == headgate.Allow {
			counts[0]++
			l.Return(receipt)
			l.Take(now, Request{Client: "new", Cost: 400})
			return
		}
		counts[1]++
	}
	for range 1000 {
		take()
	}
	if n := testing.AllocsPerRun(20_000, take); n != 0 || counts[0] < 100 || counts[1] < 100 {
		t.Errorf("Take allocates %v times for a newcomer, in %d admitted and refused requests; want 0", n, counts)
	}
}

// TestFifthClient has the example of docs/fair-share.md, in tenths of a second.
func TestFifthClient(t *testing.T) {
	for _, c := range []struct {
		trust bool
		first time.Duration // from its arrival to its first admitted request
		units [2]int        // of all clients in the cycle of its arrival and in the next one
		early int           // its units until a second after its arrival
	}{
		{true, 0, [2]int{48, 40}, 8},
		{false, 8200 * time.Millisecond, [2]int{40, 40}, 0},
	} {
		l := storyOf(t, plain(func(config *Config) { config.TrustNames = c.trust }))
		var units [2]int
		early, first := 0, time.Duration(-1)
		const arrives = 1800 * time.Millisecond
		for at := time.Duration(0); at < 2*storyCycle; at += storyCycle / 100 {
			names := []string{"A", "B", "C", "D", "E"}
			for i := range 50 {
				if name := names[i%5]; name != "E" && at%storyCycle > 0 || name == "E" && at < arrives {
					continue
				}
				if d, _ := l.Take(storyStart.Add(at), Request{Client: names[i%5]}); d.Verdict != headgate.Allow {
					continue
				}
				units[at/storyCycle]++
				if i%5 == 4 && first < 0 {
					first = at - arrives
				}
				if i%5 == 4 && at <= arrives+time.Second {
					early++
				}
			}
		}
		if units != c.units || first != c.first || early != c.early {
			t.Errorf("trusted names %v: first admitted after %v with %d units within a second, and %d units in the cycles; want %v, %d and %d",
				c.trust, first, early, units, c.first, c.early, c.units)
		}
	}
}
