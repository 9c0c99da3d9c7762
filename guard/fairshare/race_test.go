package fairshare

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
	"github.com/headgate/headgate/internal/testkit/race"
)

// TestReloadBesideDraws checks that a unit drawn from a pool stays used when settings change at
// the same time. The ledger has the units of the admitted requests. It can also
// have units of draws that the Reload interrupted.
func TestReloadBesideDraws(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16)) // More threads than cores, so that they are interrupted at any instruction.
	config := Config{Capacity: 200_000, Cycle: time.Second, Weights: pinned("A B"), ForgetAfter: 1, MaxClients: 2}
	for range rounds(20) {
		l, err := New(0, config)
		if err != nil {
			t.Fatal(err)
		}
		noNewcomers(l)
		const now = headgate.Instant(time.Second) - 1 // All entitlements are 0, so units come only from pools.
		var wg sync.WaitGroup
		var admitted, asking atomic.Int64
		for _, name := range []string{"A", "B", "A", "B", "A", "B", "A", "B"} {
			asking.Add(1)
			wg.Go(func() {
				defer asking.Add(-1)
				for refused := 0; refused < 1000; {
					if d, _ := l.Take(now, Request{Client: name}); d.Verdict == headgate.Allow {
						admitted.Add(1)
					} else {
						refused++
					}
				}
			})
		}
		for asking.Load() > 0 {
			if err := l.Reload(now, config); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		if b, fault := ledgerOf(l); b.used < admitted.Load() || b.used > config.Capacity || fault != "" {
			t.Fatalf("%d units were admitted, but the limiter has %+v %s", admitted.Load(), b, fault)
		}
	}
}

// rounds returns the number of repetitions: n, or a quarter of n under the race detector, which
// can find a race in any repetition.
func rounds(n int) int {
	if race.On {
		return n / 4
	}
	return n
}

// alone returns the number of repetitions for a single goroutine: n, or a tenth of n under the
// race detector, which finds nothing there.
func alone(n int) int {
	if race.On {
		return n / 10
	}
	return n
}

const (
	crowdWorkers  = 8
	crowdClients  = 1000
	crowdCapacity = 2000
)

// crowdTest has 8 goroutines that send requests of 1,000 clients, with one clock.
type crowdTest struct {
	t     *testing.T
	l     *Limiter
	clock atomic.Int64
	// reading is each worker's last clock reading. No worker is late by more than a cycle.
	// TestLateCallers covers later workers.
	reading [crowdWorkers]atomic.Int64
	workers [crowdWorkers]crowdCounts
}

// crowdCounts has the counters of one worker.
type crowdCounts struct {
	admitted map[headgate.Instant]int64 // by the aligned cycle of At
	clients  map[string]*[2]int64       // admitted minus returned units, and refused units, by counted name
	decided  int
}

// pass moves the time, mostly by a little and sometimes beyond the end of a cycle.
func (c *crowdTest) pass(r *rand.Rand, cycle time.Duration) {
	step := r.Int64N(int64(cycle) / 500)
	if r.IntN(400) == 0 {
		step = r.Int64N(int64(cycle) * 4 / 5)
	}
	now := c.clock.Load()
	for i := range c.reading {
		if now+step-c.reading[i].Load() > int64(cycle) {
			return
		}
	}
	c.clock.CompareAndSwap(now, now+step)
}

func (c *crowdTest) work(i, times int, config Config) {
	cycle := config.Cycle
	r := rand.New(rand.NewPCG(uint64(i), 4))
	w := &c.workers[i]
	w.admitted, w.clients = map[headgate.Instant]int64{}, map[string]*[2]int64{}
	for range times {
		c.pass(r, cycle)
		now := c.clock.Load()
		c.reading[i].Store(now)
		request := Request{Client: fmt.Sprintf("client-%04d", r.IntN(1+r.IntN(crowdClients))), Cost: 1 + r.Int64N(4)}
		d, receipt := c.l.Take(headgate.Instant(now), request)
		w.decided++
		if r.IntN(500) == 0 {
			c.disturb(r, config)
		}
		at := d.At - d.At%headgate.Instant(cycle)
		if d.Verdict != headgate.Allow {
			w.counts(request.Client)[1] += request.Cost
			continue
		}
		w.admitted[at] += request.Cost
		counted := w.counts(receipt.cell.client.name)
		counted[0] += request.Cost
		if r.IntN(8) == 0 && receipt.cell.put(receipt.cost) { // Return does the same, but does not report success.
			w.admitted[at] -= request.Cost
			counted[0] -= request.Cost
		}
	}
	c.reading[i].Store(1<<63 - 1 - int64(cycle))
}

func (w *crowdCounts) counts(name string) *[2]int64 {
	x := w.clients[name]
	if x == nil {
		x = &[2]int64{}
		w.clients[name] = x
	}
	return x
}

// disturb calls Reload and Shares while the workers run.
func (c *crowdTest) disturb(r *rand.Rand, config Config) {
	config.Capacity = []int64{crowdCapacity, crowdCapacity / 2}[r.IntN(2)]
	config.Reclaim, config.Division = Reclaims()[r.IntN(2)], share.Divisions()[r.IntN(2)]
	if err := c.l.Reload(headgate.Instant(c.clock.Load()), config); err != nil {
		c.t.Error(err)
	}
	c.l.Shares(headgate.Instant(c.clock.Load()))
}

// TestCrowd has 8 goroutines send requests of 1,000 clients, half of them pinned, while cycles
// end and settings change. No aligned cycle may admit more than the capacity. The limiter's
// totals must equal the callers' totals, to the unit.
func TestCrowd(t *testing.T) {
	for _, forgetAfter := range []int{1 << 30, 1} {
		t.Run(fmt.Sprint("forgotten after ", forgetAfter), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * crowdWorkers)) // More threads than cores, so that they are interrupted at any instruction.
			config := Config{
				Capacity: crowdCapacity, Cycle: time.Second, Reservation: 10, Weights: map[string]int64{},
				NewClientsPerCycle: 10, ForgetAfter: forgetAfter, MaxClients: crowdClients * 9 / 10,
			}
			for i := range crowdClients / 2 {
				config.Weights[fmt.Sprintf("client-%04d", 2*i)] = 1
			}
			c := &crowdTest{t: t}
			var err error
			if c.l, err = New(0, config); err != nil {
				t.Fatal(err)
			}
			noNewcomers(c.l)
			var working sync.WaitGroup
			for i := range crowdWorkers {
				working.Go(func() { c.work(i, rounds(12_000), config) })
			}
			working.Wait()
			c.check(t, forgetAfter > 1)
		})
	}
}

// check compares the limiter's totals with the callers' totals. Refusals of names without a
// share count only as a sum, in Others. If exact is true, no client is ever forgotten.
func (c *crowdTest) check(t *testing.T, exact bool) {
	t.Helper()
	sums, cycles := map[string]*[2]int64{}, map[headgate.Instant]int64{}
	all, decided := [2]int64{}, 0
	for i := range c.workers {
		for name, n := range c.workers[i].clients {
			if sums[name] == nil {
				sums[name] = &[2]int64{}
			}
			for k := range n {
				sums[name][k] += n[k]
				all[k] += n[k]
			}
		}
		for at, n := range c.workers[i].admitted {
			cycles[at] += n
		}
		decided += c.workers[i].decided
	}
	for at, n := range cycles {
		if n > crowdCapacity {
			t.Errorf("the cycle that starts at %d admitted %d units, above its capacity %d", at, n, crowdCapacity)
		}
	}
	known := [2]int64{}
	for _, x := range c.l.Shares(headgate.Instant(c.clock.Load())).Clients {
		got := [2]int64{int64(x.AdmittedTotal), int64(x.RefusedTotal)}
		known[0], known[1] = known[0]+got[0], known[1]+got[1]
		if want := sums[x.Client]; x.Pinned && want != nil && got != *want {
			t.Errorf("%s: the limiter has admitted and refused %d, but the callers count %d", x.Client, got, *want)
		}
	}
	if c.l.current.Load().others == nil { // Others has no cell now, but its counters continue.
		known[0], known[1] = known[0]+c.l.others.total(0), known[1]+int64(c.l.others.refused.Load())
	}
	if exact && known != all || known[0] > all[0] || known[1] > all[1] {
		t.Errorf("the limiter has admitted and refused %d in Others, but the callers count %d", known, all)
	}
	if len(cycles) < 5 || all[0] < 5000 || all[1] < 5000 {
		t.Errorf("only %d cycles and %d units: too few for this test", len(cycles), all)
	}
	t.Logf("%d decisions in %d cycles: admitted and refused are %d", decided, len(cycles), all)
}

// TestReversedAfterReloads: a draw that is reversed after several reloads leaves nothing in the totals, wherever the reloads
// meet it.
func TestReversedAfterReloads(t *testing.T) {
	for before := range 3 {
		for after := range 3 {
			config := Config{Capacity: 100, Cycle: time.Second, Weights: pinned("A B"), ForgetAfter: 1, MaxClients: 3}
			l, err := New(0, config)
			if err != nil {
				t.Fatal(err)
			}
			reload := func(times int) {
				for range times {
					if err := l.Reload(0, config); err != nil {
						t.Fatal(err)
					}
				}
			}
			x := l.current.Load().cells["A"]
			reload(before)
			x.drawn.Add(3)
			reload(after)
			x.reverse(3)
			if shares := l.Shares(0).Clients; shares[0].Client != "A" || shares[0].AdmittedTotal != 0 {
				t.Errorf("%d reloads before a draw and %d after it: A has %d units in total", before, after, shares[0].AdmittedTotal)
			}
		}
	}
}

// TestJoinBesideTakes checks that newcomers get exactly the units that known clients give up,
// while these clients take units. No cell may become negative.
func TestJoinBesideTakes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	for _, reclaim := range Reclaims() {
		for round := range rounds(40) {
			config := Config{
				Capacity: 20_000, Cycle: time.Second, Reclaim: reclaim, Weights: pinned("A B"), NewClientsPerCycle: 200, ForgetAfter: 1, MaxClients: 1000,
			}
			for i := range 200 {
				config.Weights[fmt.Sprint("pinned-", i)] = 1
			}
			l, err := New(0, config)
			if err != nil {
				t.Fatal(err)
			}
			noNewcomers(l)
			var wg sync.WaitGroup
			var admitted atomic.Int64
			take := func(name string, cost int64) {
				if d, _ := l.Take(headgate.Instant(time.Second/2), Request{Client: name, Cost: cost}); d.Verdict == headgate.Allow {
					admitted.Add(cost)
				}
			}
			for i := range 8 {
				wg.Go(func() {
					for n := range 2000 {
						take(fmt.Sprint("pinned-", (n*8+i)%200), 3)
					}
				})
			}
			for i := range 100 {
				take(fmt.Sprint("new-", i), 1)
				runtime.Gosched()
			}
			wg.Wait()
			if b, fault := ledgerOf(l); b.used != admitted.Load() || b.sum() != config.Capacity || fault != "" {
				t.Fatalf("%v, round %d: %d units were admitted, and the books say %+v %s", reclaim, round, admitted.Load(), b, fault)
			}
		}
	}
}

// TestRollBesideDraws checks that a draw that is active when its cycle ends does not
// change the next cycle.
func TestRollBesideDraws(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	config := Config{Capacity: 1_000_000, Cycle: time.Second, Weights: pinned("A B"), ForgetAfter: 1, MaxClients: 2}
	l, err := New(0, config)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 300 {
		// At the end all entitlements are 0, so units come only from pools.
		var clock atomic.Int64
		clock.Store(int64(round+1)*int64(time.Second) - 1)
		var wg sync.WaitGroup
		var after, asked atomic.Int64 // admitted in the next cycle
		start := headgate.Instant(round+1) * headgate.Instant(time.Second)
		for _, name := range []string{"A", "B", "A", "B", "A", "B", "A", "B"} {
			wg.Go(func() {
				for range 300 {
					asked.Add(1)
					if d, _ := l.Take(headgate.Instant(clock.Load()), Request{Client: name, Cost: 2}); d.Verdict == headgate.Allow && d.At >= start {
						after.Add(2)
					}
				}
			})
		}
		for asked.Load() < 1000 {
			runtime.Gosched()
		}
		clock.Store(int64(start))
		wg.Wait()
		l.Shares(start)
		if b, fault := ledgerOf(l); b.used != after.Load() || b.sum() != config.Capacity || fault != "" {
			t.Fatalf("round %d: %d units were admitted, and the books say %+v %s", round, after.Load(), b, fault)
		}
	}
}

// TestVainRequestsHideNothing checks that requests above the available units do not hide
// units from other callers.
func TestVainRequestsHideNothing(t *testing.T) {
	config := Config{Capacity: 1 << 40, Cycle: time.Second, Weights: pinned("A idle vain"), ForgetAfter: 1, MaxClients: 3}
	l, err := New(0, config)
	if err != nil {
		t.Fatal(err)
	}
	const now = headgate.Instant(time.Second) - 1 // All entitlements are 0, and all units are open.
	l.Take(now, Request{Client: "A", Cost: config.Capacity / 3})
	l.Take(now, Request{Client: "vain", Cost: config.Capacity / 3})
	stage := l.current.Load().pools
	stage.reserve.put(stage.open.takeUpTo(config.Capacity / 6)) // Only the client idle can use the reserve.
	var done atomic.Bool
	var vain atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for !done.Load() {
			l.Take(now, Request{Client: "vain", Cost: config.Capacity / 4})
			vain.Add(1)
		}
	})
	hidden, requests := 0, 0
	for ; requests < 100_000 || vain.Load() < 100_000; requests++ {
		if d, _ := l.Take(now, Request{Client: "A"}); d.Verdict == headgate.Deny {
			hidden++
		}
	}
	done.Store(true)
	wg.Wait()
	if hidden > 0 {
		b, _ := ledgerOf(l)
		t.Errorf("%d of %d requests with cost 1 are refused although %d units were always available", hidden, requests, b.open)
	}
}
