package prefetch

import (
	"context"
	"strings"
	"sync"

	"github.com/headgate/headgate"
)

// flight is one call for units ahead, for one group or for one key's next stash. It
// outlives the caller that began it.
type flight struct {
	ctx       context.Context //nolint:containedctx // it is the flight's own, and ends with it
	cancel    context.CancelFunc
	ops       []headgate.Op
	least     []int64
	decisions []headgate.Decision
	legs      []leg
	err       error
	done      chan struct{}

	mu sync.Mutex
	// abandoned says that nobody waits for what the legs keep; landed, that it is too late to say so.
	abandoned, landed bool
}

// leg is what a flight asks for one key.
type leg struct {
	part   part
	from   int
	least  int64
	keep   int64 // What it keeps for the caller that began it.
	forgot uint16

	// What came of it: denied, or kept of a grant that left so much besides. odd is
	// an answer that is neither.
	denied, odd bool
	kept        stash
	left        int64
	said        said
}

type flightKey struct {
	tag   uint64
	shape shape
}

// slot is what is under way for one key and shape: one flight at most, and what
// those who wait want altogether.
type slot struct {
	flight  *flight
	waiting int64
}

// flights is every flight under way. Its size is bounded by the number of callers
// that wait and by most.
type flights struct {
	mu    sync.Mutex
	slots map[flightKey]*slot
	inAir map[*flight]struct{}
	most  int
	shut  bool
	all   sync.WaitGroup
}

func (fl *flights) open(most int) {
	fl.most = most
	fl.slots, fl.inAir = make(map[flightKey]*slot), make(map[*flight]struct{})
}

func (fl *flights) close() {
	fl.mu.Lock()
	fl.shut = true
	for f := range fl.inAir {
		f.cancel()
	}
	fl.mu.Unlock()
	fl.all.Wait()
}

// slotOf gives the slot of a part; mu is held.
func (fl *flights) slotOf(p *part) *slot {
	key := flightKey{p.tag, p.shape}
	sl := fl.slots[key]
	if sl == nil {
		sl = &slot{}
		fl.slots[key] = sl
	}
	return sl
}

// sweep drops the slot of a part if nothing needs it; mu is held.
func (fl *flights) sweep(p *part) {
	key := flightKey{p.tag, p.shape}
	if sl := fl.slots[key]; sl != nil && sl.flight == nil && sl.waiting <= 0 {
		delete(fl.slots, key)
	}
}

func (fl *flights) full() bool { return fl.shut || len(fl.inAir) >= fl.most }

// launch makes each part that lacks units wait for a flight: one that is under way,
// or a new one for all the others.
func (s *Store) launch(g *group) {
	fl := &s.flights
	fl.mu.Lock()
	defer fl.mu.Unlock()
	g.state = flying
	var f *flight
	for i := range g.parts {
		p := &g.parts[i]
		if !p.lacks {
			continue
		}
		sl := fl.slotOf(p)
		if !p.joined {
			p.joined = true
			sl.waiting += p.cost
		}
		switch {
		case sl.flight != nil:
			p.flight, p.leg = sl.flight, sl.flight.legOf(p)
		case s.covered(p): // It has just landed: the next round will see it.
		case fl.full():
			g.plain = true
		default:
			if f == nil {
				f = &flight{}
			}
			p.flight, p.leg, p.leads, sl.flight = f, len(f.legs), true, f
			f.add(g.ops, p, s.board(p), p.cost, p.cost, sl.waiting+p.ahead)
		}
	}
	if f != nil {
		s.depart(f)
	}
}

// legOf gives the number of the part's leg.
func (f *flight) legOf(p *part) int {
	for i := range f.legs {
		if f.legs[i].part.tag == p.tag && f.legs[i].part.shape == p.shape {
			return i
		}
	}
	return 0
}

// covered says whether the part's stash has come to suffice.
func (s *Store) covered(p *part) bool {
	t := s.table.setOf(p.tag)
	t.lock()
	defer t.unlock()
	pl := t.find(p.tag, &p.shape)
	return pl != nil && pl.ready(s.now(), p.cost) != nil
}

// board says at the part's place that a flight is under way, and gives what it must
// know to land there.
func (s *Store) board(p *part) (forgot uint16) {
	t := s.table.setOf(p.tag)
	t.lock()
	defer t.unlock()
	if pl := t.find(p.tag, &p.shape); pl != nil {
		pl.flying = true
	}
	p.lifted = t.lifted
	return t.forgot
}

// add asks for at most cost units, and at least least, for one part.
func (f *flight) add(ops []headgate.Op, p *part, forgot uint16, least, keep, cost int64) {
	l := leg{part: *p, from: len(f.ops), least: least, keep: keep, forgot: forgot}
	l.part.flight = nil
	key := strings.Clone(ops[p.from].Key)
	for i := range p.n {
		op := headgate.Op{
			Key: key, Policy: p.policies[i].source, Window: ops[p.from+i].Window,
			Group: uint8(len(f.legs)), Cost: max(least, min(cost, p.most)),
		}
		f.ops, f.least = append(f.ops, op), append(f.least, least)
	}
	f.legs = append(f.legs, l)
}

// depart sends a flight off; mu of the flights is held.
func (s *Store) depart(f *flight) {
	fl := &s.flights
	f.done = make(chan struct{})
	f.decisions = make([]headgate.Decision, len(f.ops))
	f.ctx, f.cancel = context.WithTimeout(context.Background(), s.timeout)
	fl.inAir[f] = struct{}{}
	s.counts.flights.Add(1)
	fl.all.Go(func() { s.fly(f) })
}

// fly asks the source and lands.
func (s *Store) fly(f *flight) {
	m0 := s.now()
	f.err = s.source.Grant(f.ctx, f.ops, f.least, f.decisions)
	m1 := s.now()
	f.cancel()
	f.mu.Lock()
	f.landed = true
	if f.abandoned {
		for i := range f.legs {
			f.legs[i].keep = 0
		}
	}
	f.mu.Unlock()
	if f.err == nil {
		s.measure(f.decisions[0].At, m0, m1)
	}
	for i := range f.legs {
		s.land(f, &f.legs[i], m0, m1)
	}
	s.flights.end(f)
	close(f.done)
}

// end makes room for the next flights.
func (fl *flights) end(f *flight) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	delete(fl.inAir, f)
	for i := range f.legs {
		p := &f.legs[i].part
		if sl := fl.slots[flightKey{p.tag, p.shape}]; sl != nil && sl.flight == f {
			sl.flight = nil
		}
		fl.sweep(p)
	}
}
