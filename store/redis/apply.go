package redis

import (
	"context"
	"errors"

	"github.com/headgate/headgate"
)

// errSameState says that a group names one state twice.
var errSameState = errors.New("redis: two Ops of one group have the same Key and Window: give them one Op, or two Windows")

// turn is one Op on its way.
type turn struct {
	plan  *plan
	place place
}

// Apply implements headgate.Store. All groups travel in one pipeline, each as one
// script call. It waits for the server until ctx ends.
func (s *Store) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	turns, err := s.check(ops)
	if err != nil || len(ops) == 0 {
		return err
	}
	var calls []call
	for _, g := range groups(ops) {
		c, err := s.callOf(ops[g.from:g.to], turns[g.from:g.to])
		if err != nil {
			return err
		}
		calls = append(calls, c)
	}
	results := s.decide.run(ctx, s.client, calls)
	for i, g := range groups(ops) {
		reply, err := results[i].AsIntSlice()
		if err != nil {
			return couldNot("decide", err)
		}
		if err := s.explain(reply, ops[g.from:g.to], turns[g.from:g.to], decisions[g.from:g.to]); err != nil {
			return err
		}
	}
	return nil
}

// check finds the plans of all Ops and their faults, before anything is asked.
func (s *Store) check(ops []headgate.Op) ([]turn, error) {
	turns := make([]turn, len(ops))
	for i := range ops {
		op := &ops[i]
		p := s.plan(op.Policy)
		switch {
		case p == nil:
			return nil, headgate.ErrUnknownPolicy
		case op.Cost < 0 || op.Cost > headgate.MaxUnits:
			return nil, headgate.ErrBadCost
		case op.Mode == headgate.Book && p.policy.Algorithm != headgate.TokenBucket:
			return nil, headgate.ErrNotBookable
		}
		turns[i] = turn{plan: p, place: placeOf(op.Key, op.Window)}
	}
	return turns, nil
}

// group is a run of Ops that stand or fall together.
type group struct{ from, to int }

func groups(ops []headgate.Op) []group {
	all := make([]group, 0, 4)
	for from := 0; from < len(ops); {
		to := from + 1
		for to < len(ops) && ops[to].Group == ops[from].Group {
			to++
		}
		all = append(all, group{from, to})
		from = to
	}
	return all
}

// callOf renders a group as lua/decide.lua reads it.
func (s *Store) callOf(ops []headgate.Op, turns []turn) (call, error) {
	c := call{keys: make([]string, 0, 2*len(ops)), args: make([]string, 0, 2+2*len(ops))}
	c.args = append(c.args, s.now(), s.slack)
	for i := range ops {
		t := &turns[i]
		for j := range i {
			if turns[j].place == t.place {
				return call{}, errSameState
			}
		}
		name := t.place.name()
		c.keys = append(c.keys, name)
		if t.plan.policy.Algorithm == headgate.SlidingLog {
			c.keys = append(c.keys, listOf(name))
		}
		c.args = append(c.args, t.plan.packed, t.plan.ask(ops[i].Mode, ops[i].Cost))
	}
	return c, nil
}

// ask renders mode and cost: a bucket's cost is a time, below 0 when it can never pass.
func (p *plan) ask(mode headgate.Mode, cost int64) string {
	if p.policy.Algorithm == headgate.SlidingLog {
		return pack(byte(mode), cost, 0)
	}
	if cost > p.room {
		return pack(byte(mode), -1, 0)
	}
	takes := p.spanOf(cost)
	return pack(byte(mode), takes.us, takes.part)
}
