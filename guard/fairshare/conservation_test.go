package fairshare

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
)

// ledger is the number of units of the running cycle in each place.
type ledger struct{ cells, reserve, spare, open, used int64 }

func (b ledger) sum() int64 { return b.cells + b.reserve + b.spare + b.open + b.used }

// ledgerOf returns the ledger of an idle limiter. The fault names a negative number of
// units, or a closed cell in the running cycle.
func ledgerOf(l *Limiter) (b ledger, fault string) {
	c := l.current.Load()
	for _, x := range c.all {
		left := x.left.Load()
		if left < 0 {
			return b, fmt.Sprintf("the cell of %q has %d units left", x.client.name, left)
		}
		b.cells += left
		b.used += x.used(left)
	}
	b.used += c.removedUnits // Usage of clients that a Reload removed.
	b.cells += l.credit.held
	b.reserve, b.spare, b.open = c.pools.reserve.units.Load(), c.pools.spare.units.Load(), c.pools.open.units.Load()
	if min(b.reserve, b.spare, b.open, b.used) < 0 {
		return b, fmt.Sprintf("negative number of units in %+v", b)
	}
	return b, ""
}

// walk is a random sequence of operations on one limiter. It keeps a separate ledger and
// compares it with the limiter's units.
type walk struct {
	t        *testing.T
	rand     *rand.Rand
	l        *Limiter
	config   Config
	now      headgate.Instant
	forward  bool // the clock never steps back, and cycles keep their length
	invented int
	log      string // the last operation
	current  *cycle // the cycle of the ledger

	receipts []kept
	used     map[*client]int64 // in the running cycle
	units    int64             // the units that the running cycle may use after all its changes, without credit
	total    int64             // the units of the cycle without credit: units, or the used units if these are more
	windows  map[headgate.Instant]*window
}

// kept is a receipt that was not yet returned.
type kept struct {
	receipt Receipt
	window  headgate.Instant
	cost    int64
}

// window is the number of units that an aligned cycle admitted by At, without the credit for
// newcomers, and the largest capacity during that cycle.
type window struct{ admitted, capacity int64 }

func newWalk(t *testing.T, seed uint64, forward bool) *walk {
	t.Helper()
	w := &walk{t: t, rand: rand.New(rand.NewPCG(seed, 1)), forward: forward, used: map[*client]int64{}, windows: map[headgate.Instant]*window{}}
	w.config = Config{
		Cycle: time.Second, NewClientsPerCycle: [...]int{0, 1, 3, 8, 200}[w.rand.IntN(5)], ForgetAfter: 1 + w.rand.IntN(4), MaxClients: 4 + w.rand.IntN(120),
	}
	w.shuffle()
	w.now = headgate.Instant(w.rand.Int64N(int64(time.Hour)))
	l, err := New(w.now, w.config)
	if err != nil {
		t.Fatal(err)
	}
	w.l, w.units, w.total, w.current = l, w.config.Capacity, w.config.Capacity, l.current.Load()
	w.inForce()
	return w
}

// shuffle randomizes all settings of a Reload except the length of cycles.
func (w *walk) shuffle() {
	w.config.Capacity = [...]int64{0, 1, 3, 40, 41, 1000, 1 << 40}[w.rand.IntN(7)]
	w.config.Reservation = [...]int{0, 10, 100}[w.rand.IntN(3)]
	w.config.Division = share.Divisions()[w.rand.IntN(2)]
	w.config.Reclaim = Reclaims()[w.rand.IntN(2)]
	w.config.CountOnce = w.rand.IntN(4) == 0
	w.config.TrustNames = w.rand.IntN(2) == 0
	w.config.Weights = map[string]int64{}
	for i := range w.rand.IntN(4) {
		w.config.Weights[fmt.Sprintf("pinned-%d", i)] = 1 + w.rand.Int64N(5)
	}
}

// inForce records the capacity for the aligned cycle that contains now.
func (w *walk) inForce() {
	c := w.l.current.Load()
	x := w.windows[c.start]
	if x == nil {
		x = &window{}
		w.windows[c.start] = x
	}
	x.capacity = max(x.capacity, c.Capacity)
}

// step runs one random operation, and updates the ledger.
func (w *walk) step() {
	reloaded := false
	switch n := w.rand.IntN(100); {
	case n < 70:
		w.take()
	case n < 78:
		w.giveBack()
	case n < 92:
		w.pass()
	case n < 96:
		reloaded = w.reload()
	default:
		w.log = "Shares"
		w.l.Shares(w.now)
	}
	w.turn(reloaded)
	w.audit()
}

func (w *walk) name() string {
	switch n := w.rand.IntN(20); {
	case n < 4:
		return fmt.Sprintf("pinned-%d", n)
	case n < 14:
		return fmt.Sprintf("known-%d", n)
	case n < 15:
		return Others
	case n < 16:
		return ""
	}
	w.invented++
	return fmt.Sprintf("invented-%d", w.invented)
}

func (w *walk) take() {
	r := Request{Client: w.name(), Cost: 1 + w.rand.Int64N(20), ID: [...]string{"", "a", "b"}[w.rand.IntN(3)]}
	w.log = fmt.Sprintf("Take(%d, %+v)", w.now, r)
	d, receipt := w.l.Take(w.now, r)
	w.turn(false)
	w.inForce()
	if d.Verdict != headgate.Allow {
		return
	}
	w.used[receipt.cell.client] += r.Cost
	at := w.l.current.Load().startOf(d.At)
	if receipt.onCredit() {
		w.receipts = append(w.receipts, kept{receipt, at, r.Cost})
		return
	}
	if x := w.windows[at]; x != nil {
		x.admitted += r.Cost
	} else if w.forward {
		w.t.Fatalf("%s: At %d is in no recorded cycle", w.log, d.At)
	}
	w.receipts = append(w.receipts, kept{receipt, at, r.Cost})
}

func (w *walk) giveBack() {
	w.log = "Return"
	if len(w.receipts) == 0 {
		w.l.Return(Receipt{})
		return
	}
	i := w.rand.IntN(len(w.receipts))
	if w.rand.IntN(2) == 0 {
		i = len(w.receipts) - 1
	}
	k := w.receipts[i]
	w.receipts = append(w.receipts[:i], w.receipts[i+1:]...)
	if k.receipt.cell.left.Load() != closed {
		w.used[k.receipt.cell.client] -= k.cost
		if x := w.windows[k.window]; x != nil && !k.receipt.onCredit() {
			x.admitted -= k.cost
		}
	}
	w.l.Return(k.receipt)
}

// pass moves the time, sometimes backwards.
func (w *walk) pass() {
	step := time.Duration(w.rand.Int64N(int64([...]time.Duration{
		100, time.Microsecond, 10 * time.Millisecond, 100 * time.Millisecond, w.config.Cycle, 5 * w.config.Cycle,
	}[w.rand.IntN(6)])))
	if !w.forward && w.rand.IntN(4) == 0 {
		step = -step
	}
	w.now = w.now.Add(step)
	w.log = fmt.Sprintf("%v pass", step)
}

func (w *walk) reload() bool {
	w.shuffle()
	if !w.forward && w.rand.IntN(2) == 0 {
		w.config.Cycle = [...]time.Duration{50 * time.Millisecond, time.Second, 10 * time.Second}[w.rand.IntN(3)]
	}
	w.log = fmt.Sprintf("Reload(%d, %+v)", w.now, w.config)
	if err := w.l.Reload(w.now, w.config); err != nil {
		w.t.Fatal(err)
	}
	return true
}

// turn updates the ledger after an operation that replaced the cycle. A new cycle starts
// without used units. A cycle that continues elsewhere keeps them.
func (w *walk) turn(reloaded bool) {
	before, c := w.current, w.l.current.Load()
	w.current = c
	if c.pools == before.pools {
		return
	}
	w.units += c.Capacity - before.Capacity
	if c.number != before.number {
		clear(w.used)
		w.units = c.Capacity
	}
	if reloaded && c.Cycle != before.Cycle {
		now := w.now
		if now < before.start && !before.longBefore(now) {
			now = before.start // After a small step back, the old cycle continues.
		}
		w.units = w.allUsed() - w.l.credit.inCycle + c.part(c.Capacity, now)
	}
	w.units = min(w.units, c.Capacity)
	w.total = max(w.units, w.allUsed()-w.l.credit.inCycle)
	w.inForce()
}

func (w *walk) allUsed() (sum int64) {
	for _, n := range w.used {
		sum += n
	}
	return sum
}

// audit compares the limiter's units with the ledger of the walk.
func (w *walk) audit() {
	b, fault := ledgerOf(w.l)
	c := w.l.current.Load()
	if fault != "" {
		w.t.Fatalf("%s: %s", w.log, fault)
	}
	if used := w.allUsed(); b.used != used {
		w.t.Fatalf("%s: %d units are used, but the limiter has %+v", w.log, used, b)
	}
	k := &w.l.credit
	if k.used < 0 || k.inCycle < 0 || k.used > k.limit() {
		w.t.Fatalf("%s: newcomers use %d units beyond the capacity, %d of them in this cycle; want at most one default share, %d", w.log, k.used, k.inCycle, k.limit())
	}
	if b.used-k.inCycle > c.Capacity && b.sum() != b.used {
		w.t.Fatalf("%s: usage is above the capacity %d, but units are left: %+v", w.log, c.Capacity, b)
	}
	if b.sum() != w.total+k.inCycle {
		w.t.Fatalf("%s: the cycle has %d units, but the limiter has %+v", w.log, w.total, b)
	}
	var sizes int64
	for _, x := range c.all {
		sizes += x.size.Load()
		if used := x.used(x.left.Load()); used != w.used[x.client] {
			w.t.Fatalf("%s: %q has used %d units in the limiter, and %d in the ledger", w.log, x.client.name, w.used[x.client], used)
		}
	}
	if len(c.all) > 0 && sizes != c.Capacity {
		w.t.Fatalf("%s: the sum of the sizes is %d, want %d", w.log, sizes, c.Capacity)
	}
	if x := w.windows[c.start]; w.forward && x.admitted > x.capacity {
		w.t.Fatalf("%s: the cycle that starts at %d admitted %d units, above its capacity %d", w.log, c.start, x.admitted, x.capacity)
	}
}

// TestUnitsAreNeverMade runs random operations and counts all units after each operation.
// The sum is always the capacity, and the used units are the admitted units.
func TestUnitsAreNeverMade(t *testing.T) {
	for _, c := range []struct {
		name    string
		forward bool
	}{{"a clock that never steps back", true}, {"a clock that steps back, and changes of the cycle length", false}} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(alone(100)) {
				w := newWalk(t, seed, c.forward)
				for range 600 {
					w.step()
				}
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}
