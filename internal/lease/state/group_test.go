package state

import (
	"maps"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
)

// markStore is the etcd of a group: it stores one write after another, and needs up to slow for each. Some writes get no answer, and
// are stored or not.
type markStore struct {
	w       *world
	slow    headgate.Instant
	silent  float64 // fraction of writes without an answer
	deaf    float64 // fraction of masters that cannot read the marks
	stored  map[string]int64
	waiting map[string]int64
	term    int // of the present master
	busy    bool
}

// begin is the start of a master. Writes of the earlier ones have no effect any more.
func (m *markStore) begin() map[string]int64 {
	m.term++
	m.waiting, m.busy = map[string]int64{}, false
	if m.w.rand.Float64() < m.deaf {
		return nil
	}
	return maps.Clone(m.stored)
}

func (m *markStore) put(n *node, marks []Mark) {
	for _, one := range marks {
		m.waiting[one.Resource] = one.Amount
	}
	if m.busy || len(m.waiting) == 0 {
		return
	}
	m.busy = true
	term, server, batch := m.term, n.server, m.waiting
	m.waiting = map[string]int64{}
	answered := m.w.rand.Float64() >= m.silent
	effective := answered || m.w.rand.IntN(2) == 0
	written := m.w.now + headgate.Instant(m.w.rand.Int64N(int64(m.slow)))
	m.w.at(written, func() {
		if m.term == term && effective {
			m.write(batch)
		}
	})
	m.w.at(written+headgate.Instant(m.w.rand.Int64N(int64(m.slow))), func() {
		if m.term == term && n.server == server {
			m.busy = false
			m.answer(n, batch, answered)
		}
	})
}

func (m *markStore) write(batch map[string]int64) {
	for name, amount := range batch {
		if amount == NoMark {
			delete(m.stored, name)
		} else {
			m.stored[name] = amount
		}
	}
}

func (m *markStore) answer(n *node, batch map[string]int64, answered bool) {
	if !answered {
		for name, amount := range batch {
			if _, newer := m.waiting[name]; !newer {
				m.waiting[name] = amount
			}
		}
		m.put(n, nil)
		return
	}
	var marks []Mark
	for name, amount := range batch {
		marks = append(marks, Mark{name, amount})
	}
	n.server.Stored(n.w.now, marks)
	n.flush()
}

// group is a master of a group with clients.
type group struct {
	*world

	master   *node
	capacity int64
}

func newGroup(t *testing.T, seed uint64, clients int) *group {
	t.Helper()
	w := newWorld(t, seed)
	g := &group{world: w, capacity: int64(clients) * 100}
	c := config(Resource{Algorithm: MaxMin, Capacity: g.capacity})
	c.Marked = true
	store := &markStore{w: w, slow: 5 * ms, stored: map[string]int64{}, waiting: map[string]int64{}}
	g.master = &node{w: w, name: "master", config: c, below: map[string]*node{}, users: map[string]*client{}, marks: store}
	w.nodes = append(w.nodes, g.master)
	g.master.start()
	for range clients {
		w.join(g.master, ms, 1+w.rand.Int64N(200))
	}
	return g
}

// release ends a client, which releases its lease.
func (g *group) release(i int) {
	c := g.die(i)
	c.held = Held{}
	for range 3 { // It has no answer.
		c.seq++
		report := &Report{Holder: c.name, Seq: c.seq, Claims: []Claim{{Resource: "db", Release: true}}}
		g.send(c.delay, func() { c.node.receive("", report) })
	}
}

// churn changes demands, and lets clients die, release their leases, join, and hear nothing for a while.
func (g *group) churn() {
	most := int64(200)
	every(g.world, 10*sec, func() { most = 1 + g.rand.Int64N(1+g.rand.Int64N(400)) })
	every(g.world, 200*ms, func() { g.clients[g.rand.IntN(len(g.clients))].want(g.rand.Int64N(most)) })
	every(g.world, 4*sec, func() {
		g.die(g.rand.IntN(len(g.clients)))
		g.release(g.rand.IntN(len(g.clients)))
		g.join(g.master, ms, g.rand.Int64N(most))
		g.join(g.master, ms, g.rand.Int64N(most))
	})
	every(g.world, 3*sec, func() {
		c := g.clients[g.rand.IntN(len(g.clients))]
		delete(g.master.users, c.name)
		g.at(g.now+headgate.Instant(g.rand.Int64N(int64(40*sec))), func() { g.master.users[c.name] = c })
	})
}

// bad makes the network and etcd bad, in several ways.
func (g *group) bad(seed uint64) {
	g.loss, g.repeat, g.late = 0.1, 0.1, [...]headgate.Instant{100 * ms, sec}[seed%2]
	g.master.marks.slow = [...]headgate.Instant{5 * ms, 300 * ms, 3 * sec}[seed%3]
	g.master.marks.silent, g.master.marks.deaf = 0.1, 0.05
}

// TestGroupIsNeverAbove: masters fail, also before their last marks are stored, while messages are lost, late and repeated, clients
// come and go, and etcd is slow. At each time, all unexpired leases are within what a master that starts then counts: the mark, or
// the capacity without one.
func TestGroupIsNeverAbove(t *testing.T) {
	for seed := range uint64(race.Fewer(24, 4)) {
		g := newGroup(t, seed, 12)
		g.bad(seed)
		g.churn()
		every(g.world, 10*ms, func() {
			most := g.capacity
			if mark, ok := g.master.marks.stored["db"]; ok {
				most = mark
			}
			if out := g.out(); out > most {
				t.Fatalf("seed %d: %v: %d is out, and the next master counts %d", seed, g.now.Sub(0), out, most)
			}
			g.consistent()
		})
		every(g.world, 10*sec, func() {
			if g.rand.IntN(3) == 0 {
				g.master.fail(headgate.Instant(g.rand.Int64N(int64(3 * sec))))
			}
		})
		g.run(200 * sec)
	}
}

// TestGroupWithReloads: the capacity and the algorithm change, at the master or at the next one. Unexpired leases are within the
// largest capacity of one lease before.
func TestGroupWithReloads(t *testing.T) {
	for seed := range uint64(race.Fewer(24, 4)) {
		g := newGroup(t, seed, 12)
		g.bad(seed)
		g.churn()
		type change struct {
			at       headgate.Instant
			capacity int64
		}
		changes := []change{{0, g.capacity}}
		every(g.world, 10*ms, func() {
			most := int64(0)
			for i, c := range changes {
				if i == len(changes)-1 || changes[i+1].at > g.now-headgate.Instant(counted(30*time.Second)) {
					most = max(most, c.capacity)
				}
			}
			if out := g.out(); out > most {
				t.Fatalf("seed %d: %v: %d is out of %d: %v", seed, g.now.Sub(0), out, most, changes)
			}
		})
		every(g.world, 8*sec, func() {
			next := g.master.config.Resources[0]
			next.Capacity = g.capacity * (1 + g.rand.Int64N(4)) / 4
			next.Algorithm = [...]Algorithm{MaxMin, Proportional}[g.rand.IntN(2)]
			g.master.config.Resources = []Resource{next}
			changes = append(changes, change{g.now, next.Capacity})
			if g.master.server == nil || g.rand.IntN(3) == 0 {
				g.master.fail(headgate.Instant(g.rand.Int64N(int64(3 * sec))))
				return
			}
			if err := g.master.server.Configure(g.now, g.master.config.Resources, g.master.config.Callers); err != nil {
				t.Fatal(err)
			}
			g.master.flush()
		})
		g.run(200 * sec)
	}
}
