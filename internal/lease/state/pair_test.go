package state

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// pair is a root and a leaf, whose messages arrive at once.
type pair struct {
	t          *testing.T
	root, leaf *Server
	now        headgate.Instant
	seq        uint64
	last       map[string]Lease // of the holders of the leaf
	versions   map[Version]bool // for the leaf
}

func newPair(t *testing.T, resource Resource, restarted bool) *pair {
	t.Helper()
	p := &pair{t: t, last: map[string]Lease{}, versions: map[Version]bool{}}
	c := config(resource)
	p.root = start(t, c, 0)
	c.Resources, c.Child, c.Restarted, c.Lease = nil, true, restarted, 15*time.Second
	p.leaf = start(t, c, 0)
	return p
}

// report is a claim of a holder, or its release if it wants less than nothing.
func (p *pair) report(caller, holder string, wants int64) {
	p.t.Helper()
	p.seq++
	has := p.last[holder]
	claim := Claim{Resource: "db", Wants: max(wants, 0), Release: wants < 0, Version: has.Version, Holds: has.Amount}
	var out Out
	if err := p.leaf.Receive(p.now, caller, &Report{Holder: holder, Seq: p.seq, Claims: []Claim{claim}}, &out); err != nil {
		p.t.Fatal(err)
	}
	p.deliver(&out)
}

func (p *pair) deliver(out *Out) {
	for _, d := range out.Leases {
		p.last[d.Holder] = d.Lease
	}
}

// tick is 20 ms in the life of both servers.
func (p *pair) tick() {
	p.t.Helper()
	p.now += 20 * ms
	var up, down Out
	p.leaf.Advance(p.now, &up)
	p.deliver(&up)
	if up.Up.Seq != 0 {
		for i := range up.Up.Claims {
			if m := &up.Up.Claims[i]; len(m.Curve) == 0 && m.Holders == 0 && !m.Learning {
				m.Curve = nil // As the decoder of the service reads it.
			}
		}
		up.Up.Holder = "leaf"
		if err := p.root.Receive(p.now, "server", &up.Up, &down); err != nil {
			p.t.Fatal(err)
		}
	}
	p.root.Advance(p.now, &down)
	for _, d := range down.Leases {
		p.versions[d.Lease.Version] = true
		p.leaf.ReceiveParent(p.now, []Lease{d.Lease})
	}
}

// TestServerWithoutHolders: the last holder of a restarted server below leaves. The server still is one for its parent, on the wire
// too, where an empty curve is seen only by its number of holders. Otherwise the parent answers without an algorithm, and the next
// holder gets what it wants.
func TestServerWithoutHolders(t *testing.T) {
	p := newPair(t, Resource{Algorithm: MaxMin, Capacity: 100}, true)
	for step := range 400 {
		switch step {
		case 0:
			p.report("", "a", 30)
		case 100:
			p.report("", "a", -1)
		case 300:
			p.report("", "b", 1000)
		}
		p.tick()
		if u, _ := p.leaf.Usage(p.now, "db"); step >= 300 && u.Ledger > 100 {
			t.Fatalf("%v: the server has given %d of 100", p.now.Sub(0), u.Ledger)
		}
	}
}

// TestFloorBelowAServer: a leaf has the whole capacity for its first band. A holder of the second band joins, and gets the floor of
// its band, although the amount of the leaf stays the same. The leaf is told once for each change.
func TestFloorBelowAServer(t *testing.T) {
	p := newPair(t, Resource{Algorithm: MaxMin, Capacity: 100, Floors: []int{0, 10}}, false)
	for step := range 600 {
		if step%50 == 0 {
			p.report("", "high", 200)
			if step >= 200 && step < 400 {
				p.report("low", "low", 50)
			}
		}
		if step == 400 {
			p.report("low", "low", -1)
		}
		p.tick()
		if high, low := p.last["high"].Amount, p.last["low"].Amount; step == 300 && (high != 90 || low != 10) {
			t.Errorf("the bands have %d and %d, want 90 and 10", high, low)
		}
	}
	if high := p.last["high"].Amount; high != 100 || len(p.versions) > 6 {
		t.Errorf("the first band has %d alone, after %d versions, want 100 after at most 6", high, len(p.versions))
	}
}
