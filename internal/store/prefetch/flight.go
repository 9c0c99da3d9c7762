package prefetch

import (
	"context"
	"strings"
	"sync"

	"github.com/headgate/headgate"
)

// flight is one call of Source.Grant: for the keys of one group, or for the next stash of one
// key. A flight may outlive the caller that began it.
type flight struct {
	ctx       context.Context //nolint:containedctx // it is the flight's own, and ends with it
	cancel    context.CancelFunc
	ops       []headgate.Op
	least     []int64
	decisions []headgate.Decision
	grants    []keyGrant
	err       error
	done      chan struct{}

	mu sync.Mutex
	// abandoned: no caller waits for the units that the grants keep. landed: the answer has
	// arrived, and abandoned no longer has an effect.
	abandoned, landed bool
}

// keyGrant is the request of a flight for one key, and its result.
type keyGrant struct {
	part   keyOps
	from   int
	least  int64
	keep   int64 // The units kept for the caller that began the flight.
	forgot uint16

	// The result is one of three: denied, or the stash kept with left units beside it, or odd,
	// which is any other answer.
	denied, odd bool
	kept        stash
	left        int64
	said        said
}

type flightKey struct {
	tag   uint64
	shape shape
}

// slot is the state of one key and shape: at most one flight, and the sum of the units that
// its waiters need.
type slot struct {
	flight  *flight
	waiting int64
}

// flights has every flight in progress. Its size is bounded by the number of waiting callers
// and by most.
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

// slotOf gives the slot of p. The caller holds mu.
func (fl *flights) slotOf(p *keyOps) *slot {
	key := flightKey{p.tag, p.shape}
	sl := fl.slots[key]
	if sl == nil {
		sl = &slot{}
		fl.slots[key] = sl
	}
	return sl
}

// sweep drops the slot of p when it is not in use. The caller holds mu.
func (fl *flights) sweep(p *keyOps) {
	key := flightKey{p.tag, p.shape}
	if sl := fl.slots[key]; sl != nil && sl.flight == nil && sl.waiting <= 0 {
		delete(fl.slots, key)
	}
}

func (fl *flights) full() bool { return fl.shut || len(fl.inAir) >= fl.most }

// launch makes each key that lacks units wait for a flight: the one in progress for the key,
// or a new one for all remaining keys.
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
			p.flight, p.grant = sl.flight, sl.flight.grantOf(p)
		case s.covered(p): // The flight has just landed: the next round sees its units.
		case fl.full():
			g.plain = true
		default:
			if f == nil {
				f = &flight{}
			}
			p.flight, p.grant, p.leads, sl.flight = f, len(f.grants), true, f
			f.add(g.ops, p, s.beginFlight(p), p.cost, p.cost, sl.waiting+p.ahead)
		}
	}
	if f != nil {
		s.startFlight(f)
	}
}

// grantOf gives the index of p's grant in the flight.
func (f *flight) grantOf(p *keyOps) int {
	for i := range f.grants {
		if f.grants[i].part.tag == p.tag && f.grants[i].part.shape == p.shape {
			return i
		}
	}
	return 0
}

// covered reports whether the stash of p now has enough units.
func (s *Store) covered(p *keyOps) bool {
	t := s.table.setOf(p.tag)
	t.lock()
	defer t.unlock()
	pl := t.find(p.tag, &p.shape)
	return pl != nil && pl.ready(s.now(), p.cost) != nil
}

// beginFlight marks the place of p: a flight is in progress. It gives the set's count of
// forgotten keys, which the flight compares when it lands.
func (s *Store) beginFlight(p *keyOps) (forgot uint16) {
	t := s.table.setOf(p.tag)
	t.lock()
	defer t.unlock()
	if pl := t.find(p.tag, &p.shape); pl != nil {
		pl.flying = true
	}
	p.lifted = t.lifted
	return t.forgot
}

// add requests between least and cost units for one key.
func (f *flight) add(ops []headgate.Op, p *keyOps, forgot uint16, least, keep, cost int64) {
	l := keyGrant{part: *p, from: len(f.ops), least: least, keep: keep, forgot: forgot}
	l.part.flight = nil
	key := strings.Clone(ops[p.from].Key)
	for i := range p.n {
		op := headgate.Op{
			Key: key, Policy: p.policies[i].source, Window: ops[p.from+i].Window,
			Group: uint8(len(f.grants)), Cost: max(least, min(cost, p.most)), Edges: ops[p.from+i].Edges,
		}
		f.ops, f.least = append(f.ops, op), append(f.least, least)
	}
	f.grants = append(f.grants, l)
}

// startFlight runs a flight in its own goroutine. The caller holds mu of the flights.
func (s *Store) startFlight(f *flight) {
	fl := &s.flights
	f.done = make(chan struct{})
	f.decisions = make([]headgate.Decision, len(f.ops))
	f.ctx, f.cancel = context.WithTimeout(context.Background(), s.timeout)
	fl.inAir[f] = struct{}{}
	s.counts.flights.Add(1)
	fl.all.Go(func() { s.run(f) })
}

// run calls the source and stores the result.
func (s *Store) run(f *flight) {
	m0 := s.now()
	f.err = s.source.Grant(f.ctx, f.ops, f.least, f.decisions)
	m1 := s.now()
	f.cancel()
	f.mu.Lock()
	f.landed = true
	if f.abandoned {
		for i := range f.grants {
			f.grants[i].keep = 0
		}
	}
	f.mu.Unlock()
	if f.err == nil {
		s.measure(f.decisions[0].At, m0, m1)
	}
	for i := range f.grants {
		s.land(f, &f.grants[i], m0, m1)
	}
	s.flights.end(f)
	close(f.done)
}

// end removes a flight from those in progress.
func (fl *flights) end(f *flight) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	delete(fl.inAir, f)
	for i := range f.grants {
		p := &f.grants[i].part
		if sl := fl.slots[flightKey{p.tag, p.shape}]; sl != nil && sl.flight == f {
			sl.flight = nil
		}
		fl.sweep(p)
	}
}
