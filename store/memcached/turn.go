package memcached

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// turn is one Op, without its key.
type turn struct {
	plan   *limit.Plan
	id     headgate.PolicyID
	window uint8
	mode   headgate.OpKind
	cost   int64

	// at is the time of the decision.
	at headgate.Instant
	// state is the state to count in, and was that state before. A Peek has a copy.
	state *state
	was   state
	draw  limit.Draw // with the edges of the Op
}

// part is the Ops of one group with one key, or one Op with a counter.
type part struct {
	key   digest
	turns []turn
	// counter: the only turn uses a counter.
	counter bool
	// decisions are the part's own. The group copies them.
	decisions []headgate.Decision
	// places are the positions of the turns in the group.
	places []int
	// refused: another part of the group is refused. Nothing is taken, and attempts count where the
	// policy says so.
	refused bool
	// never: an Op of the group can never pass. Only bans count it.
	never bool
	// at is the time to decide at, if not that of the cycle: all parts of a group are decided at
	// one time.
	at    headgate.Instant
	nonce func() uint64
	// fault is the error of the last decide: the time is outside the edges of a turn. Nothing is
	// counted.
	fault error

	// lone has memory for one turn, which is enough for most parts.
	lone struct {
		turn     [1]turn
		decision [1]headgate.Decision
		place    [1]int
	}
}

// decide judges the part at now, and counts all of it or nothing. It may run again on another
// version of the item, when the first version could not be written.
func (p *part) decide(it *item, now headgate.Instant) {
	if p.at != 0 && now.Sub(p.at) <= together { // A larger difference means that this machine has slept.
		now = p.at
	}
	if p.fault = p.checkEdges(it.time(now)); p.fault != nil {
		return
	}
	switch p.turns[0].mode {
	case headgate.Refund:
		p.refund(it, now)
		return
	case headgate.Charge:
		p.charge(it, now)
		return
	default:
	}
	passes, countable := !p.refused, !p.never
	for i := range p.turns {
		t, d := &p.turns[i], &p.decisions[i]
		t.at = it.time(now)
		if t.plan.Policy.Algorithm == headgate.Ban {
			// A ban's window moves back with the clock, once, and keeps its attempts.
			t.at = now
		}
		t.begin(it)
		t.judge(t.cost, t.mode, d)
		passes = passes && d.Verdict != headgate.Deny
		countable = countable && d.Reason != headgate.Never
	}
	for i := range p.turns {
		t, d := &p.turns[i], &p.decisions[i]
		if passes || d.Verdict == headgate.Deny {
			p.settle(t, countable, d)
		} else {
			t.stayBehind(countable, d)
		}
		if t.mode != headgate.Peek && !t.plan.Blocks() {
			it.settled(t.state, &t.was, t.at)
		}
		d.RetryAfter, d.ResetAfter = microsUp(d.RetryAfter, t.at.Sub(now)), microsUp(d.ResetAfter, t.at.Sub(now))
	}
	it.last = it.time(now)
}

// checkEdges returns the error of the first turn whose windows do not contain the time.
func (p *part) checkEdges(now headgate.Instant) error {
	for i := range p.turns {
		t := &p.turns[i]
		if err := t.plan.CheckEdges(t.draw.Edges, now); err != nil {
			return err
		}
	}
	return nil
}

// microsUp converts a time after a decision into a time after the present. The decision is ahead of
// the present by ahead. The result is in whole microseconds, as in all decisions of the store.
func microsUp(d, ahead time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return (d + ahead + time.Microsecond - 1).Truncate(time.Microsecond)
}

// denied reports whether the part is refused.
func (p *part) denied() bool {
	for i := range p.decisions {
		if p.decisions[i].Verdict == headgate.Deny {
			return true
		}
	}
	return false
}

// counts reports whether the part, which has been tried, counts an attempt when another part is
// refused.
func (p *part) counts() bool {
	for i := range p.turns {
		t, denied := &p.turns[i], p.decisions[i].Verdict == headgate.Deny
		if t.countsAnyway(denied) && t.plan.CountsRefused(!p.never) {
			return true
		}
	}
	return false
}

// countsAnyway reports whether the Kind of a turn lets an attempt count in a refused group. denied:
// the turn is refused itself.
func (t *turn) countsAnyway(denied bool) bool {
	return t.mode != headgate.Peek && (t.mode != headgate.TakeIfAll || denied)
}

// looks reports whether the part takes nothing in any case.
func (p *part) looks() bool {
	for i := range p.turns {
		if p.turns[i].mode != headgate.Peek {
			return false
		}
	}
	return true
}

// begin finds the state of the turn's family. Peek gets a copy, and so does a bucket with a limit
// of 0, because it must not change the counts of another limit.
func (t *turn) begin(it *item) {
	t.state, t.was = it.find(t.window, t.plan.Family()), state{}
	copies := t.mode == headgate.Peek || t.plan.Blocks()
	switch {
	case t.state == nil:
		t.state = newState(t.window, t.plan)
		if !copies {
			it.add(t.state)
		}
	case copies:
		t.state = t.state.clone()
	default:
		t.was = t.state.before()
	}
}

// judge decides into d and takes nothing.
func (t *turn) judge(cost int64, mode headgate.OpKind, d *headgate.Decision) {
	if sliding(t.plan) {
		w := t.state.ring(t.plan, t.at)
		t.plan.JudgeWindows(w, t.at, cost, d)
		t.state.settleMoves()
		return
	}
	t.draw.Ended = t.state.ended
	t.plan.JudgeOf(&t.state.cell, t.state.plan, t.at, cost, mode, &t.draw)
	t.state.ended = t.draw.Ended
	t.plan.Explain(&t.draw, d)
}

// take counts the last decision of judge.
func (t *turn) take(d *headgate.Decision) {
	s := t.state
	if !sliding(t.plan) {
		if t.plan.TakeOf(&s.cell, s.plan, &t.draw) {
			s.plan = t.plan
		}
		t.plan.Receipt(&t.draw, &d.Receipt)
		return
	}
	for i := range s.rings {
		if w := &s.rings[i]; t.plan.Rings(w) {
			t.plan.TakeWindows(w, t.at, d)
		} else {
			t.plan.CountWindows(w, d.At, d.Receipt.Cost)
		}
	}
	s.settleMoves()
	s.plan = t.plan
}

// settle counts a turn after the decision, as its Kind requires, and fills its Receipt. countable
// reports that no turn of the part has the reason Never.
func (p *part) settle(t *turn, countable bool, d *headgate.Decision) {
	passes := d.Verdict != headgate.Deny
	if t.mode == headgate.Peek {
		d.Receipt = headgate.Receipt{}
		return
	}
	if passes || t.plan.CountsRefused(countable) {
		t.take(d)
	}
	if !passes || t.cost == 0 || !t.plan.Returnable() {
		d.Receipt = headgate.Receipt{}
		return
	}
	d.Receipt.Nonce, d.Receipt.Policy = p.nonce(), t.id
	d.Receipt.Place = p.key.place(t.window, t.state.cell.Epoch)
}

// stayBehind completes a turn that passes alone, in a group that is refused. The attempt is counted
// if the policy counts refused attempts, and the Kind is not TakeIfAll. Remaining and ResetAfter are
// those without the turn.
func (t *turn) stayBehind(countable bool, d *headgate.Decision) {
	if t.countsAnyway(false) && t.plan.CountsRefused(countable) {
		t.take(d)
	}
	look := turn{plan: t.plan, at: t.at, draw: limit.Draw{Edges: t.draw.Edges}, state: t.state.clone()}
	var without headgate.Decision
	look.judge(0, headgate.Peek, &without)
	d.Remaining, d.ResetAfter, d.Receipt = without.Remaining, without.ResetAfter, headgate.Receipt{}
}
