package prefetch

import (
	"context"
	"math"
	"time"

	"github.com/headgate/headgate"
)

// coldBelow is the number of requests a hold below which a key gets no stash. ahead prefetches
// n - sqrt(n) of n expected units, and a grant of less than two units saves no call. That
// is true for n below 4.
const coldBelow = 4

// glanced is the number of requests of a key before the request that gives it a place.
const glanced = 3

// glances counts requests of keys without a place, by some bits of their tags. Keys that
// share a count get a place sooner. The counts are next to the tags of a set and under
// their lock, so that a cold key touches two cache lines.
type glances struct {
	since  time.Duration
	counts [56]uint8
}

// saw counts a request. It gives the number of requests with the same bits within a hold.
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

// isCold reports that no units would be prefetched for a request of a key without a place.
// With its fourth request in a hold, the key gets a place.
func (t *set) isCold(policy *policy, tag uint64, now time.Duration) bool {
	return policy.batch == 0 && float64(t.glances.saw(tag, policy.hold, now)) < coldBelow
}

// isCold reports the same for a key with a place and without a usable stash.
func (p *place) isCold(policy *policy, cost int64) bool {
	return policy.batch == 0 && !p.flying && p.expect(cost) < coldBelow*float64(cost)
}

// lone is the working memory of one request that goes to the source unchanged.
type lone struct {
	ops       [1]headgate.Op
	decisions [1]headgate.Decision
}

// glance is what was read for a request: the time, the tag of its key, and the set's count of
// lifted refusals.
type glance struct {
	at     time.Duration
	tag    uint64
	lifted uint16
}

// takeCold has the source decide one op of a key that gets no stash.
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

// recordCold remembers a refusal, unless refusals were lifted meanwhile.
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
