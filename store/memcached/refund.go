package memcached

import (
	"context"
	"strconv"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/meta"
)

// corrects reports whether the part is a Refund or a Charge, which is the only turn of its group.
func (p *part) corrects() bool { return limit.Corrects(p.turns[0].mode) }

// refund gives units back to the state of the turn's family. Without a state, or if no units come
// back, it changes nothing.
func (p *part) refund(it *item, now headgate.Instant) {
	t, d := &p.turns[0], &p.decisions[0]
	t.at = it.time(now)
	s, units := it.find(t.window, t.plan.Family()), int64(0)
	if s == nil {
		s = newState(t.window, t.plan)
	} else if t.cost > 0 {
		was := s.before()
		var given bool
		if units, given = t.giveUnits(s); given {
			it.settled(s, &was, t.at)
			// An emptied state is kept until earlier receipts are worthless: a new state could have their epoch.
			s.until = max(s.until, was.until)
			it.last = t.at
		}
	}
	look := turn{plan: t.plan, at: t.at, draw: limit.Draw{Edges: t.draw.Edges}, state: s.clone()}
	if t.plan.Calendar() && units > 0 {
		t.plan.Explain(&t.draw, d)
	} else {
		look.judge(0, headgate.Peek, d)
	}
	limit.SettleRefund(d, units)
	d.ResetAfter = microsUp(d.ResetAfter, t.at.Sub(now))
}

// giveUnits gives the cost of the turn back to s. It reports whether any units came back, and for a
// fixed window their number.
func (t *turn) giveUnits(s *state) (units int64, given bool) {
	if !sliding(t.plan) {
		t.draw.Ended = s.ended
		units, given = t.plan.RefundCell(&s.cell, s.plan, t.at, t.cost, &t.draw)
		s.ended = t.draw.Ended
		return units, given
	}
	for i := range s.rings {
		given = t.plan.RefundWindows(&s.rings[i], t.at, t.cost) || given
	}
	s.settleMoves()
	if given {
		s.cell.Epoch++
	}
	return 0, given
}

// correctCounted gives units back to a counter, or charges them. It writes the counter on the condition that no other
// process has changed it, because a subtraction alone could go below 0, and would keep the epoch.
//
// An attempt that was added and is refused is subtracted later. If a caller refunds more than it
// took, that subtraction can leave fewer units than were taken.
func (s *Store) correctCounted(ctx context.Context, p *part) error {
	n, name := s.serverOf(&p.key), p.name()
	var rivals pace
	for try := 0; ; try++ {
		if err := rivals.yield(ctx); err != nil {
			return couldNot("write a counter before other processes do", err)
		}
		began := n.clock.mono()
		var h held
		if err := n.read(ctx, name, &h); err != nil {
			return err
		}
		it, err := s.parsePart(p, &h)
		if err != nil {
			return n.failed(err)
		}
		if p.decide(it, p.at); !it.changed {
			return nil
		}
		stored, err := n.replaceCounter(ctx, name, p, it.states[0], h.cas)
		if err != nil || stored {
			return err
		}
		rivals.met(true, n.clock.mono()-began)
		n.conflicts.Add(1)
		if try >= s.config.Retries {
			n.exhausted.Add(1)
			return ErrContended
		}
	}
}

// replaceCounter writes a corrected counter, and reports whether the counter was still unchanged.
func (n *node) replaceCounter(ctx context.Context, name string, p *part, s *state, cas uint64) (bool, error) {
	const greatestEpoch = 1<<15 - 1
	kind := meta.Set
	if cas == 0 { // A Charge of a new key.
		kind = meta.Add
	}
	epoch := uint64(s.cell.Epoch-1)%greatestEpoch + 1 // A Refund has added 1. Servers read a greater number beyond its end.
	asked := [1]meta.Request{{
		Kind: kind, Key: name, CAS: cas, Value: strconv.AppendUint(nil, epoch<<epochShift+s.cell.Units, 10),
		TTL: s.freeAtWindow().Sub(p.at) + n.slack,
	}}
	var answer [1]meta.Response
	if err := n.do(ctx, "write a counter", asked[:], answer[:]); err != nil {
		return false, err
	}
	if answer[0].Status == meta.Refused {
		return false, n.failed(refused(n.addr, &answer[0]))
	}
	return answer[0].Status == meta.OK, nil
}

// freeAtWindow gives the end of the window of a counter.
func (s *state) freeAtWindow() headgate.Instant { return s.cell.Time.Add(s.plan.Policy.Limit.Per) }
