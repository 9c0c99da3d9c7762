package redis

import (
	"context"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/compensate"
	"github.com/headgate/headgate/internal/store/script"
)

// splitQuery has a caller's Ops in several queries. On a cluster, each query has neighbouring Ops of
// one group and one slot. Otherwise each has whole groups, up to the size of a batch.
type splitQuery struct {
	asks  []*query
	errs  []error
	apart []split
}

// split is a group in several queries: the ranges of its Ops and of its parts.
type split struct {
	from, to int
	ends     []int // of the parts, counted from the group's first Op
	policies []headgate.Policy
}

// applyApart decides on a cluster, or more Ops than a batch holds.
func (s *Store) applyApart(ctx context.Context, ops []headgate.Op, least []int64, decisions []headgate.Decision) error {
	var p splitQuery
	for from := 0; from < len(ops); {
		to := endOfGroup(ops, from)
		first := len(p.asks)
		if err := s.part(&p, ops[from:to], leastOf(least, from, to)); err != nil {
			for _, a := range p.asks {
				s.lanes.asks.put(a)
			}
			return err
		}
		if s.config.Kind == Cluster && len(p.asks)-first > 1 {
			policies := policiesOf(p.asks[first:])
			soften(p.asks[first:], policies)
			p.apart = append(p.apart, split{from, to, endsOf(p.asks[first:]), policies})
		}
		from = to
	}
	if err := s.decideParts(ctx, &p, decisions); err != nil {
		return err
	}
	s.settle(ctx, &p, ops, decisions)
	return nil
}

func leastOf(least []int64, from, to int) []int64 {
	if least == nil {
		return nil
	}
	return least[from:to]
}

// part adds one group to the queries.
func (s *Store) part(p *splitQuery, group []headgate.Op, least []int64) error {
	if s.config.Kind == Cluster {
		return s.split(p, group, least)
	}
	if n := len(p.asks); n == 0 || p.asks[n-1].weight+len(group) > maxBatch {
		p.asks = append(p.asks, s.lanes.asks.get())
	}
	return s.addGroups(p.asks[len(p.asks)-1], group, least)
}

// split adds the queries of one group, one for each slot.
func (s *Store) split(p *splitQuery, group []headgate.Op, least []int64) error {
	var last *query
	for i := range group {
		place := script.PlaceOf(group[i].Key, group[i].Window)
		slot := s.names.Slot(place)
		if last == nil || last.slot != slot {
			last = s.lanes.asks.get()
			last.slot = slot
			p.asks = append(p.asks, last)
		}
		if err := s.add(last, &group[i]); err != nil {
			return err
		}
		if least != nil {
			last.least = append(last.least, least[i])
		}
	}
	return nil
}

func endsOf(parts []*query) []int {
	ends, end := make([]int, len(parts)), 0
	for i, a := range parts {
		end += len(a.ops)
		ends[i] = end
	}
	return ends
}

// policiesOf gives the policies of a group's Ops. They may be freed before the group is decided.
func policiesOf(parts []*query) []headgate.Policy {
	var policies []headgate.Policy
	for _, a := range parts {
		for _, p := range a.plans {
			policies = append(policies, p.Policy())
		}
	}
	return policies
}

// soften turns the parts of a group that can never pass into Peek.
func soften(parts []*query, policies []headgate.Policy) {
	var ops []headgate.Op
	for _, a := range parts {
		ops = append(ops, a.ops...)
	}
	if !compensate.Soften(ops, policies) {
		return
	}
	for _, a := range parts {
		n := copy(a.ops, ops)
		ops = ops[n:]
	}
}

// decideParts sends all queries and waits for all answers. This goroutine may send the last query;
// other goroutines send the others, so that the nodes work at the same time.
func (s *Store) decideParts(ctx context.Context, p *splitQuery, decisions []headgate.Decision) error {
	if err := s.admitAll(p); err != nil {
		return err
	}
	p.errs = make([]error, len(p.asks))
	for i, a := range p.asks[:len(p.asks)-1] {
		p.errs[i] = a.lane.submit(ctx, a, aside)
	}
	last := len(p.asks) - 1
	p.errs[last] = p.asks[last].lane.submit(ctx, p.asks[last], inline)
	from, failed := 0, error(nil)
	for i, a := range p.asks {
		n, mine, err := len(a.ops), true, p.errs[i]
		if err == nil {
			mine, err = a.wait(ctx)
		}
		if err == nil {
			copy(decisions[from:from+n], a.decisions)
		} else {
			failed = err
		}
		if mine {
			s.lanes.asks.put(a)
		}
		from += n
	}
	return failed
}

// admitAll asks the breakers of all nodes before any query is sent. A group with a key on an
// unreachable node takes no units on other nodes.
func (s *Store) admitAll(p *splitQuery) error {
	for i, a := range p.asks {
		err := s.admitBeside(a, p.asks[:i])
		if err == nil {
			continue
		}
		for _, admitted := range p.asks[:i] {
			admitted.lane.decline(admitted)
		}
		for _, a := range p.asks {
			s.lanes.asks.put(a)
		}
		return err
	}
	return nil
}

// admitBeside admits a query together with an earlier one to the same node, if there is one: the
// breaker allows one probe, and these queries count as one.
func (s *Store) admitBeside(a *query, before []*query) error {
	l := s.lanes.of(a.slot)
	for _, b := range before {
		if b.lane == l {
			a.lane, a.began = l, b.began
			return nil
		}
	}
	return l.admit(a)
}

// settle combines the decisions of each group that was decided in parts, and returns the units of
// refused groups. Units that cannot be returned in time stay used: the refusal is final.
func (s *Store) settle(ctx context.Context, p *splitQuery, ops []headgate.Op, decisions []headgate.Decision) {
	var back []headgate.Receipt
	for _, group := range p.apart {
		from, to := group.from, group.to
		back = compensate.Settle(ops[from:to], group.policies, group.ends, decisions[from:to], back)
	}
	if len(back) > 0 {
		_ = s.Return(ctx, back)
	}
}
