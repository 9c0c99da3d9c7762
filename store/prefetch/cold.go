package prefetch

import (
	"context"
	"math"
	"time"

	"github.com/headgate/headgate"
)

// coldBelow is how many requests a hold are worth no stash: of n that are expected ahead takes
// n - sqrt(n), and a call for less than two units saves no other call. That is so below 4.
const coldBelow = 4

// glanced is how many requests of a key go before the one that gives it a place.
const glanced = 3

// glances counts requests for keys that have no place, by some bits of their tags: keys may share
// a count, and have a place sooner then. It is beside the tags of a set, so that a cold key
// touches two lines of memory, and under their lock.
type glances struct {
	since  time.Duration
	counts [56]uint8
}

// saw counts a request, and gives how many there were under these bits since a hold began.
func (g *glances) saw(tag uint64, hold, now time.Duration) int {
	if e := now - g.since; e >= hold || e < 0 {
		*g = glances{since: now}
	}
	n := &g.counts[tag%uint64(len(g.counts))]
	if *n < math.MaxUint8 {
		*n++
	}
	return int(*n)
}

// isCold reports whether no units would be taken ahead for a request of a key without a place.
// From the fourth request in a hold on, such a key has a place.
func (t *set) isCold(of *policy, tag uint64, now time.Duration) bool {
	return of.batch == 0 && float64(t.glances.saw(tag, of.hold, now)) < coldBelow
}

// isCold reports the same of a key that has a place and no stash that serves.
func (p *place) isCold(of *policy, cost int64) bool {
	return of.batch == 0 && !p.flying && p.expect(cost) < coldBelow*float64(cost)
}

// lone is the working memory of one request that goes to the source as it is.
type lone struct {
	ops       [1]headgate.Op
	decisions [1]headgate.Decision
}

// glance is what was read when a request was looked at: when, its key's tag, and how often
// refusals of its set had been lifted.
type glance struct {
	at     time.Duration
	tag    uint64
	lifted uint16
}

// takeCold has the source decide one op of a key that is worth no stash.
func (s *Store) takeCold(ctx context.Context, p *policy, op *headgate.Op, d *headgate.Decision, seen glance) error {
	l, ok := s.lones.Get().(*lone)
	if !ok {
		l = new(lone)
	}
	l.ops[0] = *op
	l.ops[0].Policy, l.ops[0].Group = p.source, 0
	err := s.source.Apply(ctx, l.ops[:], l.decisions[:])
	*d = l.decisions[0]
	l.ops[0].Key = ""
	s.lones.Put(l)
	if err != nil {
		return err
	}
	s.counts.asked.Add(1)
	d.Limit = p.room
	if s.denyFor < 0 {
		return nil
	}
	if repeatable(d) {
		s.recordCold(p, op, d, seen)
	}
	if !d.Receipt.Empty() {
		s.trail.note(d.Receipt.Nonce, seen.tag)
	}
	return nil
}

// recordCold remembers a refusal. It does not when refusals were lifted meanwhile.
func (s *Store) recordCold(p *policy, op *headgate.Op, d *headgate.Decision, seen glance) {
	m1 := s.now()
	t, sh := s.table.setOf(seen.tag), shape{word(op)}
	t.lock()
	defer t.unlock()
	if t.lifted != seen.lifted {
		return
	}
	pl := s.placeFor(t, seen.tag, &sh, p.hold, m1)
	s.noteRefusals(&pl.said, []headgate.Op{*op}, []headgate.Decision{*d}, seen.at, m1)
}
