package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// unit is one unit of the twin: its time, and the slot that it belongs to.
type unit struct {
	at   time.Duration
	slot *Slot
}

// twin is the queue as its documentation has it: a list of units and a list of waiters.
type twin struct {
	pace    Pace
	units   []unit
	waiters []*Waiter
}

func (w *twin) put(s *Slot) int {
	i := len(w.units)
	for i > 0 && w.units[i-1].slot.At > s.At {
		i--
	}
	for k := range s.Units {
		at := s.At - time.Duration(s.Units-1-k)*time.Duration(w.pace.Interval)
		if w.pace.Spaced {
			at = s.At + time.Duration(k)*time.Duration(w.pace.Interval)
		}
		w.units = slices.Insert(w.units, i+int(k), unit{at, s})
	}
	return i
}

func (w *twin) add(waiter *Waiter, s *Slot) {
	before, i, ends := w.put(s), len(w.waiters), w.cost()
	for i > 0 && ends > before {
		i--
		ends -= int(w.waiters[i].Cost)
	}
	w.waiters = slices.Insert(w.waiters, i, waiter)
}

func (w *twin) cost() (all int) {
	for _, waiter := range w.waiters {
		all += int(waiter.Cost)
	}
	return all
}

// departure gives the time at which the first waiter goes.
func (w *twin) departure() (at time.Duration) {
	for k, u := range w.units[:w.waiters[0].Cost] {
		t := u.at
		if w.pace.Spaced {
			t -= time.Duration(k) * time.Duration(w.pace.Interval)
		}
		at = max(at, t)
	}
	return at
}

func (w *twin) pop(now time.Duration) *Waiter {
	if len(w.waiters) == 0 || w.departure() > now {
		return nil
	}
	first := w.waiters[0]
	w.units, w.waiters = w.units[first.Cost:], w.waiters[1:]
	return first
}

func (w *twin) leave(waiter *Waiter, now time.Duration) {
	if w.waiters[0] == waiter && w.pace.Spaced {
		w.units = slices.DeleteFunc(w.units, func(u unit) bool { return u.at < now })
	}
	w.waiters = slices.DeleteFunc(w.waiters, func(other *Waiter) bool { return other == waiter })
}

// game plays a queue and its twin, or the queue alone, with random bookings of a bucket
// that other instances book from too.
type game struct {
	t        *testing.T
	rnd      *rand.Rand
	q        Queue
	twin     *twin
	now, tat time.Duration
	promised map[*Waiter]time.Duration
	waiting  []*Waiter
	booked   []unit // all that were ever booked, by their times
	gone     int    // units that went
}

const interval = 10 * time.Millisecond

func newGame(t *testing.T, seed uint64, spaced bool) *game {
	t.Helper()
	pace := Pace{Interval: float64(interval), Spaced: spaced}
	return &game{
		t: t, rnd: rand.New(rand.NewPCG(seed, 5)), q: New(pace), twin: &twin{pace: pace}, promised: map[*Waiter]time.Duration{},
	}
}

// book gives a slot of a bucket without a burst.
func (g *game) book(cost int64) *Slot {
	if g.rnd.IntN(3) == 0 {
		g.tat = max(g.tat, g.now) + time.Duration(g.rnd.IntN(5))*interval // Another instance books.
	}
	from := max(g.tat, g.now)
	g.tat = from + time.Duration(cost)*interval
	s := &Slot{At: from, Units: cost}
	if !g.q.pace.Spaced {
		s.At = from + time.Duration(cost-1)*interval
	}
	for k := range cost {
		g.booked = append(g.booked, unit{at: from + time.Duration(k)*interval})
	}
	return s
}

func (g *game) join() {
	w := &Waiter{Cost: 1 + g.rnd.Int64N(4)}
	if at, ok := g.q.Promise(w.Cost); ok && at >= g.now {
		g.promised[w] = at
		g.q.Append(w)
		g.twin.waiters = append(g.twin.waiters, w)
	} else {
		s := g.book(w.Cost)
		g.promised[w] = s.At
		g.q.Add(w, s)
		g.twin.add(w, s)
	}
	g.waiting = append(g.waiting, w)
}

func (g *game) leave() {
	if len(g.waiting) == 0 {
		return
	}
	w := g.waiting[g.rnd.IntN(len(g.waiting))]
	g.q.Leave(w, g.now)
	g.twin.leave(w, g.now)
	g.drop(w)
	if g.rnd.IntN(2) > 0 {
		return
	}
	if s := g.q.TakeTail(); s != nil {
		n := len(g.twin.units)
		if first := n - int(s.Units); g.twin.units[first].slot != s || g.twin.cost() > first {
			g.t.Errorf("a slot of %d units is taken that is not spare", s.Units)
		}
		g.twin.units = g.twin.units[:n-int(s.Units)]
	}
}

func (g *game) drop(w *Waiter) {
	g.waiting = slices.DeleteFunc(g.waiting, func(other *Waiter) bool { return other == w })
}

// pass lets time pass. With a twin both let the same waiters go.
func (g *game) pass(compare bool) {
	g.now += time.Duration(g.rnd.IntN(30)) * time.Millisecond
	for w := g.q.Pop(g.now); w != nil; w = g.q.Pop(g.now) {
		if compare {
			if other := g.twin.pop(g.now); other != w {
				g.t.Fatalf("at %v another waiter goes than the first: %+v, not %+v", g.now, w, other)
			}
		}
		if g.promised[w] < g.now-30*time.Millisecond {
			g.t.Errorf("at %v one goes that was promised %v", g.now, g.promised[w])
		}
		g.drop(w)
		g.gone += int(w.Cost)
	}
	for _, w := range g.waiting {
		if g.promised[w] <= g.now {
			g.t.Errorf("at %v one waits that was promised %v", g.now, g.promised[w])
		}
	}
	g.q.Expire(g.now)
	if compare {
		if len(g.twin.waiters) == 0 {
			g.twin.units = slices.DeleteFunc(g.twin.units, func(u unit) bool { return u.at < g.now })
		} else if at, _ := g.q.Next(); at != g.twin.departure() {
			g.t.Fatalf("at %v the next departure is %v, want %v", g.now, at, g.twin.departure())
		}
	}
	g.check(compare)
}

func (g *game) check(compare bool) {
	come := 0
	for _, u := range g.booked {
		if u.at <= g.now {
			come++
		}
	}
	if ahead := g.gone - come; ahead > 3 || ahead > 0 && !g.q.pace.Spaced {
		g.t.Errorf("at %v %d units have gone, and %d have come", g.now, g.gone, come)
	}
	units, cost := int64(0), int64(0)
	for s := g.q.slots.first; s != nil; s = s.next {
		units += s.left()
	}
	for w := g.q.first; w != nil; w = w.next {
		cost += w.Cost
	}
	if units != g.q.slots.units || cost != g.q.cost || units < cost {
		g.t.Fatalf("at %v %d units and a cost of %d: noted are %d and %d", g.now, units, cost, g.q.slots.units, g.q.cost)
	}
	if compare && (int(units) != len(g.twin.units) || int(cost) != g.twin.cost()) {
		g.t.Fatalf("at %v %d units and a cost of %d, want %d and %d", g.now, units, cost, len(g.twin.units), g.twin.cost())
	}
}

// TestTwin: while few leave, the queue does what two plain lists do, for mixed costs, for
// slots that others have booked between, and for slots of which a part is used.
func TestTwin(t *testing.T) {
	for seed := range uint64(400) {
		g := newGame(t, seed, seed%2 == 1)
		for range 150 {
			switch g.rnd.IntN(4) {
			case 0, 1:
				g.join()
			case 2:
				g.leave()
				g.q.turns = turns{} // Few leave.
			default:
				g.pass(true)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestPromises: while many leave, and the newest go first, each waiter goes or has gone
// when its promise comes, and never more goes than was booked until then.
func TestPromises(t *testing.T) {
	jumps := 0
	for seed := range uint64(400) {
		g := newGame(t, seed, seed%2 == 1)
		for range 400 {
			switch g.rnd.IntN(6) {
			case 0, 1, 2:
				g.join()
			case 3:
				if g.q.first != nil && g.rnd.IntN(4) > 0 {
					w := g.q.first
					g.q.Leave(w, g.now)
					g.drop(w)
				}
				g.q.turns.losing = mostLosing
			default:
				if w := g.q.first; w != nil && g.q.turns.find(w) >= 0 {
					jumps++
				}
				g.pass(false)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if jumps < 1000 {
		t.Errorf("only %d times a turn was left to the newest waiter", jumps)
	}
}

// TestQueueAllocatesNothing: joining, leaving and going allocate nothing. Owner and slot
// are the caller's.
func TestQueueAllocatesNothing(t *testing.T) {
	q := New(Pace{Interval: float64(interval)})
	var a, b Waiter
	var s, r Slot
	if n := testing.AllocsPerRun(100, func() {
		a, b = Waiter{Cost: 1}, Waiter{Cost: 1}
		s, r = Slot{At: 1, Units: 1, Receipt: headgate.Receipt{Nonce: 1}}, Slot{At: 2, Units: 1, Receipt: headgate.Receipt{Nonce: 2}}
		q.Add(&a, &s)
		q.Add(&b, &r)
		q.Leave(&b, 0)
		if q.TakeTail() != &r || q.Pop(2) != &a || a.Receipt.Nonce != 1 {
			t.Fatal("another slot")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
