package memcached

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/meta"
)

// A counter is a number on a server that counts one window of one fixed_window. Its name has the
// digest of the key, the window's number in its rule, the period, and the number of the period
// since 1970. So each period has its own counter. The number is a random epoch, which identifies
// receipts, times 2^48, plus the units.
//
// An attempt is added first. If it exceeds the limit, it is subtracted again. Otherwise smaller
// attempts would be refused, and returned units would free nothing. Until the subtraction, other
// attempts may be refused. No attempt is admitted above the limit.
const (
	epochShift = 48
	// maxCounted bounds the limits that use counters: 65,535 concurrent attempts of the largest cost
	// may exceed the limit before their sum reaches the epoch.
	maxCounted = 1 << 31
	// maxCountedPer bounds the periods of limits that use counters. The server would keep a counter of
	// a longer period for ever, and there would be one for each period.
	maxCountedPer = 29 * 24 * time.Hour
)

// counted reports whether a policy uses counters. It depends only on the policy and the
// configuration, so that all counts of a limit are in one place.
func (s *Store) counted(p *headgate.Policy) bool {
	l := p.Limit
	return s.config.Counters && p.Algorithm == headgate.FixedWindow && !p.CountRejected && p.Overdraft == 0 &&
		l.Calendar == headgate.NoCalendar &&
		l.Count <= maxCounted && l.Per <= maxCountedPer
}

// counterOf gives the name of the counter for time t.
func (d *digest) counterOf(window uint8, per time.Duration, t headgate.Instant) string {
	b := append([]byte(d.name()), ":c"...)
	b = strconv.AppendUint(b, uint64(window), 36)
	b = append(b, ':')
	b = strconv.AppendInt(b, int64(per), 36)
	b = append(b, ':')
	return string(strconv.AppendInt(b, int64(t)/int64(per), 36))
}

// name gives the name of the part's item or counter. A part with a counter has its time.
func (p *part) name() string {
	if !p.counter {
		return p.key.name()
	}
	t := &p.turns[0]
	return p.key.counterOf(t.window, t.plan.Policy.Limit.Per, p.at)
}

// takesNothing reports whether the part, which has a counter, needs no write.
func (p *part) takesNothing() bool {
	t := &p.turns[0]
	return p.refused || t.mode == headgate.Peek || t.cost == 0 || t.cost > t.plan.Policy.Limit.Count
}

// parsePart reads the part's item, or its counter as an item.
func (s *Store) parsePart(p *part, h *held) (*item, error) {
	if !p.counter {
		return s.parse(h)
	}
	if !h.found {
		return &item{}, nil
	}
	number, err := strconv.ParseUint(string(h.value), 10, 64)
	if err != nil {
		return nil, errForeign
	}
	return p.counterItem(number, 0), nil
}

// counterItem gives a counter's number, less cost, as an item. Negative units count as 0: they occur
// when an attempt is subtracted from a counter that was forgotten meanwhile.
func (p *part) counterItem(number uint64, cost int64) *item {
	t := &p.turns[0]
	units, epoch := unitsOf(number)
	s := &state{window: t.window, plan: t.plan}
	s.cell.Time = p.at - p.at%headgate.Instant(t.plan.Policy.Limit.Per)
	s.cell.Units, s.cell.Epoch = uint64(max(units-cost, 0)), epoch
	return &item{states: []*state{s}}
}

// unitsOf splits a counter's number. The units are signed, in 48 bits.
func unitsOf(number uint64) (units int64, epoch uint16) {
	const unused = 64 - epochShift
	units = int64(number<<unused) >> unused
	return units, uint16((number - uint64(units)) >> epochShift)
}

// count counts a part in its counter. It needs one round trip if the part passes.
func (s *Store) count(ctx context.Context, p *part) error {
	n, t, name := s.serverOf(&p.key), &p.turns[0], p.name()
	per := t.plan.Policy.Limit.Per
	ends := (p.at - p.at%headgate.Instant(per)).Add(per)
	// Servers of version 1.6 read a number of 2^63 or more beyond its end, to look for a sign.
	epoch := uint64(1 + rand.Uint32N(1<<15-1))
	asked := [1]meta.Request{{
		Kind: meta.Increment, Key: name, Delta: uint64(t.cost),
		Create: true, Initial: epoch<<epochShift + uint64(t.cost), TTL: ends.Sub(p.at) + n.slack,
	}}
	var answer [1]meta.Response
	if err := n.do(ctx, "count", asked[:], answer[:]); err != nil {
		return err
	}
	if answer[0].Status != meta.OK {
		return n.failed(refused(n.addr, &answer[0]))
	}
	p.decide(p.counterItem(answer[0].Number, t.cost), p.at)
	if !p.denied() {
		return nil
	}
	return s.countBack(ctx, n, name, t.cost)
}

// countBack subtracts units from a counter. A missing counter needs no subtraction.
func (s *Store) countBack(ctx context.Context, n *node, name string, cost int64) error {
	asked := [1]meta.Request{{Kind: meta.Decrement, Key: name, Delta: uint64(cost)}}
	var answer [1]meta.Response
	return n.do(ctx, "take off what is not counted", asked[:], answer[:])
}

// giveBackCounted returns a receipt to its counter, if the counter still has the receipt's epoch.
func (s *Store) giveBackCounted(ctx context.Context, d digest, plan *limit.Plan, r *headgate.Receipt) error {
	n := s.serverOf(&d)
	all, back := &unitReturn{}, &unitReturn{}
	all.add(plan, r)
	if err := n.note(ctx, &d, all, back); err != nil || len(back.receipts) == 0 {
		return err
	}
	_, window, epoch := placeIn(r)
	name := d.counterOf(window, plan.Policy.Limit.Per, r.From)
	var h held
	if err := n.read(ctx, name, &h); err != nil || !h.found {
		return err
	}
	number, err := strconv.ParseUint(string(h.value), 10, 64)
	if err != nil {
		return errForeign
	}
	if _, now := unitsOf(number); now != epoch {
		return nil
	}
	return s.countBack(ctx, n, name, r.Units())
}

// forgetCounters deletes the counters of an Op's key and window. For each prepared period it deletes
// the present counter and its neighbours: callers with other clocks may count there.
func (s *Store) forgetCounters(ctx context.Context, op *headgate.Op) error {
	periods := map[time.Duration]bool{}
	s.policies.Each(func(p headgate.Policy) {
		if s.counted(&p) {
			periods[p.Limit.Per] = true
		}
	})
	if len(periods) == 0 {
		return nil
	}
	d := digestOf(op.Key)
	n := s.serverOf(&d)
	now, err := n.now(ctx)
	if err != nil {
		return err
	}
	var asked []meta.Request
	for per := range periods {
		for _, at := range [...]headgate.Instant{now.Add(-per), now, now.Add(per)} {
			asked = append(asked, meta.Request{Kind: meta.Delete, Key: d.counterOf(op.Window, per, at)})
		}
	}
	for len(asked) > 0 {
		some := asked[:min(len(asked), meta.MaxRequests)]
		if err := n.do(ctx, "forget counters", some, make([]meta.Response, len(some))); err != nil {
			return err
		}
		asked = asked[len(some):]
	}
	return nil
}
