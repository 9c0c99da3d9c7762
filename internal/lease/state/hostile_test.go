package state

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
)

// hostile is a master with marks whose holders send anything.
type hostile struct {
	*Server

	t       *testing.T
	rnd     *rand.Rand
	w       *world
	now     headgate.Instant
	out     Out
	pending []Mark
	seqs    [6]uint64
	before  int64 // may be out
	low     int64 // of the mark
}

func newHostile(t *testing.T, seed uint64) *hostile {
	t.Helper()
	h := &hostile{t: t, rnd: rand.New(rand.NewPCG(seed, 9)), w: newWorld(t, seed)}
	c := config(Resource{Algorithm: MaxMin, Capacity: 1000, Floors: [][]int{nil, {10, 20}}[seed%2], MinCapacity: 100 * int64(seed%3)})
	c.Term, c.Restarted, c.Marked = 3, seed%5 > 0, seed%4 > 0
	if seed%7 > 2 {
		c.Marks = map[string]int64{"db": h.rnd.Int64N(1500)}
	}
	h.Server = start(t, c, 0)
	above := &node{} // The ledger may be above a lowered capacity: check says how far.
	h.w.nodes = append(h.w.nodes, &node{w: h.w, name: "master", server: h.Server, parent: above})
	return h
}

// message is a random report. A third of the holders are servers.
func (h *hostile) message() {
	i := h.rnd.IntN(len(h.seqs))
	h.seqs[i] += h.rnd.Uint64N(3)
	claim := Claim{
		Resource: "db", Wants: h.rnd.Int64N(3000), Version: Version{h.rnd.Uint64N(5), h.rnd.Uint64N(60)}, Holds: h.rnd.Int64N(2000),
		Left: time.Duration(h.rnd.IntN(3)) * 10 * time.Second, Release: h.rnd.IntN(15) == 0, Spent: h.rnd.Int64N(1000),
	}
	claim.Refused = h.rnd.Int64N(claim.Spent + 1)
	caller := [...]string{"", "low", "w7", "server", "", "server"}[i]
	if caller == "server" {
		claim.Curve, claim.Holders, claim.Learning = []Bucket{}, h.rnd.Int64N(4), h.rnd.IntN(4) == 0
		for range h.rnd.IntN(4) {
			claim.Curve = append(claim.Curve, Bucket{1 + h.rnd.IntN(3), 1 + h.rnd.Int64N(10), 1 + h.rnd.Int64N(900)})
		}
	}
	report := &Report{Holder: fmt.Sprint(i), Seq: h.seqs[i] + 1, Claims: []Claim{claim}}
	report.Acks = append(report.Acks, Ack{"db", Version{3, h.rnd.Uint64N(60)}, h.rnd.Int64N(1500)})
	if err := h.Receive(h.now, caller, report, &h.out); err != nil {
		h.t.Fatal(err)
	}
}

// reload changes the capacity and the algorithm.
func (h *hostile) reload() {
	next := h.config.Resources[0]
	next.Capacity = 200 + h.rnd.Int64N(1300)
	next.MinCapacity, next.Algorithm = min(next.MinCapacity, next.Capacity), [...]Algorithm{MaxMin, Proportional}[h.rnd.IntN(2)]
	if err := h.Configure(h.now, []Resource{next}, h.config.Callers); err != nil {
		h.t.Fatal(err)
	}
	if r := h.resources["db"]; r != nil {
		h.before = max(h.before, r.out()) // The unknown holder follows the capacity.
	}
}

// check fails if more is out than before, and more than the capacity or the mark.
func (h *hostile) check() {
	h.t.Helper()
	r := h.resources["db"]
	if r == nil {
		h.before, h.low = 0, 0
		return
	}
	h.w.consistent()
	var noted int64
	for _, c := range r.claims {
		noted += c.noted
		if c.grant < 0 || c.target < 0 {
			h.t.Fatalf("%v: grant %d and target %d", h.now.Sub(0), c.grant, c.target)
		}
	}
	limit := r.capacity
	if r.marked {
		limit = min(limit, max(h.low, r.mark.low))
	}
	if h.before > 0 && r.out() > max(h.before, limit) || r.unknown < 0 || noted != r.noted {
		h.t.Fatalf("%v: %d is out after %d, %d of it unknown, at most %d; noted %d, want %d", h.now.Sub(0), r.out(), h.before, r.unknown,
			limit, r.noted, noted)
	}
	h.before, h.low = r.out(), r.mark.low
}

// TestHostileReports: whatever holders say, also about earlier servers, and whatever a reload changes meanwhile, nothing is given above
// the capacity and the mark, and Advance ends.
func TestHostileReports(t *testing.T) {
	for seed := range uint64(race.Fewer(1000, 100)) {
		h := newHostile(t, seed)
		for range 150 {
			h.now += ms * headgate.Instant(h.rnd.IntN(30)+h.rnd.IntN(2)*h.rnd.IntN(1000))
			switch h.rnd.IntN(12) {
			case 0:
				h.reload()
			case 1:
				n := h.rnd.IntN(len(h.pending) + 1)
				h.Stored(h.now, h.pending[:n])
				h.pending = h.pending[n:]
			default:
				h.message()
			}
			h.check()
			for steps := 0; len(h.queue) > 0 && h.queue[0].due <= h.now; steps++ {
				if h.advance(h.queue.pop(), h.now, &h.out); steps > 5 {
					t.Fatalf("seed %d: %v: Advance does not end", seed, h.now.Sub(0))
				}
				h.check()
			}
			h.pending = append(h.pending, h.out.Marks...)
			h.out.Reset()
		}
	}
}
