package redis

import (
	"context"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/compensate"
	"github.com/headgate/headgate/internal/store/script"
)

// splitQuery has a caller's Ops in several queries. On a cluster, each query has neighbouring Ops of
// one group and one slot. Otherwise each query has whole groups, up to the size of a batch.
type splitQuery struct {
	queries []*query
	errs    []error
	apart   []split
}

// split describes a group that is in several queries. Its Ops are ops[from:to] of the caller.
type split struct {
	from, to int
	ends     []int // end of each query's Ops, counted from the group's first Op
	policies []headgate.Policy
	// looks: the queries are the first round of a group of TakeIfAll, and count nothing.
	looks bool
}

// applyApart decides Ops on a cluster, or more Ops than fit in a batch.
func (s *Store) applyApart(ctx context.Context, ops []headgate.Op, least []int64, decisions []headgate.Decision) error {
	var p splitQuery
	for from := 0; from < len(ops); {
		to := endOfGroup(ops, from)
		first := len(p.queries)
		if err := s.appendGroup(&p, ops[from:to], leastOf(least, from, to)); err != nil {
			for _, a := range p.queries {
				s.queues.pool.put(a)
			}
			return err
		}
		if s.config.Kind == Cluster && len(p.queries)-first > 1 {
			p.apart = append(p.apart, newSplit(p.queries[first:], from, to))
		}
		from = to
	}
	err := s.decideQueries(ctx, &p, decisions)
	if err != nil && !compensate.IsOutside(err) {
		return err
	}
	s.settle(ctx, &p, ops, decisions)
	if err == nil {
		err = s.countLooks(ctx, &p, ops, decisions)
	}
	if err != nil {
		p.undecideApart(decisions)
	}
	return err
}

// undecideApart sets the decisions of groups that are not decided because of an EdgeError of one of their queries. settle
// has returned their units. Groups of TakeIfAll have counted nothing before their second round.
func (p *splitQuery) undecideApart(decisions []headgate.Decision) {
	for i := range p.apart {
		g := &p.apart[i]
		if all := decisions[g.from:g.to]; g.looks || slices.Contains(all, headgate.Undecided()) {
			compensate.Undecide(all)
		}
	}
}

// newSplit describes a group that is in several queries, and changes the kinds of their Ops: those of
// TakeIfAll become Peek, and those of a group that can never pass are softened.
func newSplit(queries []*query, from, to int) split {
	g := split{
		from: from, to: to, ends: endsOf(queries), policies: policiesOf(queries),
		looks: queries[0].ops[0].Kind == headgate.TakeIfAll,
	}
	if !g.looks {
		soften(queries, g.policies)
		return g
	}
	for _, a := range queries {
		for i := range a.ops {
			a.ops[i].Kind = headgate.Peek
		}
	}
	return g
}

func leastOf(least []int64, from, to int) []int64 {
	if least == nil {
		return nil
	}
	return least[from:to]
}

// appendGroup adds one group to the queries.
func (s *Store) appendGroup(p *splitQuery, group []headgate.Op, least []int64) error {
	if s.config.Kind == Cluster {
		return s.appendBySlot(p, group, least)
	}
	if n := len(p.queries); n == 0 || p.queries[n-1].weight+len(group) > maxBatch {
		p.queries = append(p.queries, s.queues.pool.get())
	}
	return s.addGroups(p.queries[len(p.queries)-1], group, least)
}

// appendBySlot adds one group on a cluster: neighbouring Ops with the same slot share a query.
func (s *Store) appendBySlot(p *splitQuery, group []headgate.Op, least []int64) error {
	var last *query
	for i := range group {
		place := script.PlaceOf(group[i].Key, group[i].Window)
		slot := s.names.Slot(place)
		if last == nil || last.slot != slot {
			last = s.queues.pool.get()
			last.slot = slot
			p.queries = append(p.queries, last)
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

func endsOf(queries []*query) []int {
	ends, end := make([]int, len(queries)), 0
	for i, a := range queries {
		end += len(a.ops)
		ends[i] = end
	}
	return ends
}

// policiesOf gives the policies of a group's Ops. The store may free the policies before the group
// is decided.
func policiesOf(queries []*query) []headgate.Policy {
	var policies []headgate.Policy
	for _, a := range queries {
		for _, p := range a.plans {
			policies = append(policies, p.Policy())
		}
	}
	return policies
}

// soften turns all Ops of a group into Peek if the group can never pass.
func soften(queries []*query, policies []headgate.Policy) {
	var ops []headgate.Op
	for _, a := range queries {
		ops = append(ops, a.ops...)
	}
	if !compensate.Soften(ops, policies) {
		return
	}
	for _, a := range queries {
		n := copy(a.ops, ops)
		ops = ops[n:]
	}
}

// decideQueries sends all queries and waits for all answers. An error of another kind comes before an EdgeError. This
// goroutine may send the last query inline. Other goroutines send the other queries, so that the nodes work at the same time.
func (s *Store) decideQueries(ctx context.Context, p *splitQuery, decisions []headgate.Decision) error {
	if err := s.admitAll(p); err != nil {
		return err
	}
	p.errs = make([]error, len(p.queries))
	for i, a := range p.queries[:len(p.queries)-1] {
		p.errs[i] = a.queue.submit(ctx, a, aside)
	}
	last := len(p.queries) - 1
	p.errs[last] = p.queries[last].queue.submit(ctx, p.queries[last], inline)
	from, failed := 0, error(nil)
	for i, a := range p.queries {
		n, mine, err := len(a.ops), true, p.errs[i]
		if err == nil {
			mine, err = a.wait(ctx)
		}
		if err == nil || compensate.IsOutside(err) {
			copy(decisions[from:from+n], a.decisions)
		}
		if err != nil && (failed == nil || compensate.IsOutside(failed)) {
			failed = err
		}
		if mine {
			s.queues.pool.put(a)
		}
		from += n
	}
	return failed
}

// admitAll checks the breakers of all nodes before any query is sent. Without this check, a group
// with a key on an unreachable node would take units on other nodes.
func (s *Store) admitAll(p *splitQuery) error {
	for i, a := range p.queries {
		err := s.admitBeside(a, p.queries[:i])
		if err == nil {
			continue
		}
		for _, admitted := range p.queries[:i] {
			admitted.queue.decline(admitted)
		}
		for _, a := range p.queries {
			s.queues.pool.put(a)
		}
		return err
	}
	return nil
}

// admitBeside admits a query. Queries of a caller to the same node share one admission, because an
// open breaker allows only one probe.
func (s *Store) admitBeside(a *query, before []*query) error {
	l := s.queues.queue(a.slot)
	for _, b := range before {
		if b.queue == l {
			a.queue, a.began = l, b.began
			return nil
		}
	}
	return l.admit(a)
}

// settle combines the decisions of each group that was decided in several queries, and returns the
// units of refused groups. A failed return leaves the units used, and the refusal stands.
func (s *Store) settle(ctx context.Context, p *splitQuery, ops []headgate.Op, decisions []headgate.Decision) {
	var back []headgate.Receipt
	for _, group := range p.apart {
		from, to := group.from, group.to
		back = compensate.Settle(ops[from:to], group.policies, group.ends, decisions[from:to], back)
	}
	if len(back) > 0 {
		_ = s.returnBy(ctx, back, script.UndoCall)
	}
}
