package memcached

import (
	"context"
	"errors"
	"sync"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/meta"
)

// decideParts decides a group of several keys. No single write reaches all of them.
//
// All items are read at the same time, and the whole group is tried on these versions. If a part is
// refused, nothing has been taken, and only parts that count attempts are written. Otherwise the
// parts are decided one after another. A part may still be refused, because another process has
// written first. The units of earlier parts are then returned. Until then, other processes may see
// fewer free units than there are, and never more.
func (s *Store) decideParts(ctx context.Context, g *group) error {
	if err := s.dateParts(ctx, g.parts); err != nil {
		return err
	}
	seen := make([]held, len(g.parts))
	if err := s.readParts(ctx, g.parts, seen); err != nil {
		return err
	}
	refuses := false
	for i, p := range g.parts {
		if _, err := s.try(ctx, p, &seen[i]); err != nil {
			return err
		}
		refuses = refuses || p.denied()
	}
	for i, p := range g.parts {
		err := s.decidePart(ctx, p, &seen[i], refuses)
		if err == nil {
			err = p.fault
		}
		if err != nil {
			s.giveUp(ctx, g.parts[:i])
			return err
		}
		if p.denied() && !refuses {
			refuses = true
			if err := s.undo(ctx, g.parts[:i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// dateParts gives each part a time: that of its server at this moment.
func (s *Store) dateParts(ctx context.Context, parts []*part) error {
	for _, p := range parts {
		var err error
		if p.at, err = s.serverOf(&p.key).now(ctx); err != nil {
			return err
		}
	}
	return nil
}

// try decides a part on the item that was read, and writes nothing. It reports whether a write is
// needed.
func (s *Store) try(ctx context.Context, p *part, h *held) (bool, error) {
	it, err := s.parsePart(p, h)
	if err != nil {
		return false, err
	}
	at, err := s.serverOf(&p.key).timeOf(ctx, it, p.at)
	if err != nil {
		return false, err
	}
	if !p.counter {
		p.at = at
	}
	p.decide(it, at)
	return it.changed, p.fault
}

// decidePart decides a part with a write. refuses: another part is refused. A part that takes
// nothing is still written if its item must be cleaned up, as after a step back of the clock.
func (s *Store) decidePart(ctx context.Context, p *part, h *held, refuses bool) error {
	stands := p.refused == refuses // The result of the trial is valid for this value of refuses.
	p.refused = refuses
	nothing := p.looks() || p.counter && p.takesNothing()
	switch {
	case nothing && stands:
		return nil
	case nothing || refuses && !p.counts():
		changed, err := s.try(ctx, p, h)
		if nothing || !changed || err != nil {
			return err
		}
	case p.counter:
		return s.count(ctx, p)
	}
	return s.flights.do(ctx, p.key, &request{work: p, hint: h})
}

// readParts reads the items of parts: one request for each server, to all servers at the same time.
func (s *Store) readParts(ctx context.Context, parts []*part, seen []held) error {
	byNode := make(map[*node][]int)
	for i, p := range parts {
		n := s.serverOf(&p.key)
		byNode[n] = append(byNode[n], i)
	}
	errs := make([]error, 0, len(byNode))
	var mu sync.Mutex
	var all sync.WaitGroup
	for n, which := range byNode {
		all.Go(func() {
			if err := n.readMany(ctx, parts, which, seen); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// readMany reads the items of the parts on one server.
func (n *node) readMany(ctx context.Context, parts []*part, which []int, seen []held) error {
	asked, answers := make([]meta.Request, len(which)), make([]meta.Response, len(which))
	for j, i := range which {
		asked[j] = meta.Request{Kind: meta.Get, Key: parts[i].name()}
	}
	for begin := 0; begin < len(which); begin += meta.MaxRequests {
		end := min(begin+meta.MaxRequests, len(which))
		if err := n.do(ctx, "read keys", asked[begin:end], answers[begin:end]); err != nil {
			return err
		}
	}
	for j, i := range which {
		seen[i].take(&answers[j])
	}
	return nil
}

// undo returns the units of the parts of a refused group, and updates their Remaining. Counted
// attempts stay counted. These receipts need no note, because no caller has them.
func (s *Store) undo(ctx context.Context, parts []*part) error {
	for _, p := range parts {
		back := &unitReturn{}
		for i := range p.turns {
			t, d := &p.turns[i], &p.decisions[i]
			if t.mode == headgate.Peek || t.countsAnyway(false) && t.plan.CountsRefused(true) {
				d.Receipt = headgate.Receipt{}
				continue
			}
			back.add(t.plan, &d.Receipt)
			d.Verdict, d.Reason, d.RetryAfter = headgate.Allow, headgate.WithinLimit, 0
			d.Remaining = min(d.Limit, d.Remaining+t.cost)
			d.Receipt = headgate.Receipt{}
		}
		if err := s.returnUnits(ctx, p, back); err != nil {
			return err // Units that could not be returned stay counted.
		}
	}
	return nil
}

// returnUnits returns the units of a part.
func (s *Store) returnUnits(ctx context.Context, p *part, back *unitReturn) error {
	switch {
	case len(back.receipts) == 0:
		return nil
	case p.counter:
		return s.countBack(ctx, s.serverOf(&p.key), p.name(), back.receipts[0].Cost)
	default:
		return s.flights.do(ctx, p.key, &request{work: back})
	}
}

// giveUp returns, as far as time allows, the units of parts of a group that could not be decided.
func (s *Store) giveUp(ctx context.Context, parts []*part) {
	if ctx.Err() == nil {
		_ = s.undo(ctx, parts) // The caller gets the error of the decision.
	}
}
