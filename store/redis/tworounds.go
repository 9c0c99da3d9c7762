package redis

import (
	"context"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/compensate"
	"github.com/headgate/headgate/internal/store/script"
)

// secondRound has the Ops that count after the first round of groups of TakeIfAll.
type secondRound struct {
	splitQuery

	ops []headgate.Op
	// places are the positions of the Ops among the caller's Ops. passes[i] reports whether the group
	// of ops[i] has passed the first round.
	places []int
	passes []bool
}

// countLooks is the second round of the groups of TakeIfAll that were decided in several queries.
// decisions has the results of the first round. All Ops of a group that has passed take their units. Of
// a refused group, the refused Ops count, if their policies count refused attempts.
func (s *Store) countLooks(ctx context.Context, p *splitQuery, ops []headgate.Op, decisions []headgate.Decision) error {
	var r secondRound
	for i := range p.apart {
		if !p.apart[i].looks {
			continue
		}
		if err := s.addSecond(&r, &p.apart[i], ops, decisions); err != nil {
			for _, a := range r.queries {
				s.queues.pool.put(a)
			}
			return err
		}
	}
	if len(r.queries) == 0 {
		return nil
	}
	second := make([]headgate.Decision, len(r.ops))
	if err := s.decideQueries(ctx, &r.splitQuery, second); err != nil {
		if compensate.IsOutside(err) { // A window has ended since the first round.
			back := make([]headgate.Receipt, len(second))
			for i := range second {
				back[i] = second[i].Receipt
			}
			_ = s.returnBy(ctx, back, script.UndoCall)
		}
		return err
	}
	s.settle(ctx, &r.splitQuery, r.ops, second)
	for i, place := range r.places {
		// The refusal of the first round stands, although an Op may pass alone by now.
		if r.passes[i] || second[i].Verdict == headgate.Deny {
			decisions[place] = second[i]
		}
	}
	return nil
}

// addSecond adds the Ops of a group that count in the second round.
func (s *Store) addSecond(r *secondRound, g *split, ops []headgate.Op, decisions []headgate.Decision) error {
	which, passes := compensate.Counting(g.policies, decisions[g.from:g.to])
	if len(which) == 0 {
		return nil
	}
	from, first := len(r.ops), len(r.queries)
	for _, i := range which {
		r.ops = append(r.ops, ops[g.from+i])
		r.places, r.passes = append(r.places, g.from+i), append(r.passes, passes)
	}
	if err := s.appendBySlot(&r.splitQuery, r.ops[from:], nil); err != nil {
		return err
	}
	if queries := r.queries[first:]; passes && len(queries) > 1 {
		r.apart = append(r.apart, split{from: from, to: len(r.ops), ends: endsOf(queries), policies: policiesOf(queries)})
	}
	return nil
}
