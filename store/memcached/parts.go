package memcached

import (
	"context"
	"errors"
	"sync"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/meta"
)

// decideParts decides a group of several keys, which no single write reaches.
//
// All items are read at once and the whole group is tried on what was read: if a part
// refuses, nothing has been taken, and only parts that count attempts are written. If
// all pass, the parts are decided one after another. Should one refuse then, because
// others were faster, what was taken before is given back, after which less than
// there is may have been seen by others, never more.
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

// dateParts gives all parts one time: each its server's at this moment.
func (s *Store) dateParts(ctx context.Context, parts []*part) error {
	for _, p := range parts {
		var err error
		if p.at, err = s.serverOf(&p.key).now(ctx); err != nil {
			return err
		}
	}
	return nil
}

// try decides a part on what was read, and writes nothing. It reports whether there
// is anything to write.
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
	return it.changed, nil
}

// decidePart decides a part in earnest; refuses says that another part refuses. What
// takes nothing is written all the same if there is something to tidy up, as after
// the clock has stepped back: else it would never be.
func (s *Store) decidePart(ctx context.Context, p *part, h *held, refuses bool) error {
	stands := p.refused == refuses // What it was tried for.
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

// readParts reads the items of parts, those of one server in one write, all servers at once.
func (s *Store) readParts(ctx context.Context, parts []*part, seen []held) error {
	of := make(map[*node][]int, len(s.nodes))
	for i, p := range parts {
		n := s.serverOf(&p.key)
		of[n] = append(of[n], i)
	}
	errs := make([]error, 0, len(of))
	var mu sync.Mutex
	var all sync.WaitGroup
	for n, which := range of {
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

// readMany reads the items of those parts that belong to the server.
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

// undo gives back what parts have taken whose group is refused, and says what is
// left then. Attempts stay counted where they count. Receipts that nobody has seen
// need no note.
func (s *Store) undo(ctx context.Context, parts []*part) error {
	for _, p := range parts {
		back := &refund{}
		for i := range p.turns {
			t, d := &p.turns[i], &p.decisions[i]
			if t.mode == headgate.Peek || t.plan.CountsRefused(true) {
				d.Receipt = headgate.Receipt{}
				continue
			}
			back.add(t.plan, &d.Receipt)
			d.Verdict, d.Reason, d.RetryAfter = headgate.Allow, headgate.WithinLimit, 0
			d.Remaining = min(d.Limit, d.Remaining+t.cost)
			d.Receipt = headgate.Receipt{}
		}
		if err := s.refund(ctx, p, back); err != nil {
			return err // What could not be given back stays counted.
		}
	}
	return nil
}

// refund gives back what a part took.
func (s *Store) refund(ctx context.Context, p *part, back *refund) error {
	switch {
	case len(back.receipts) == 0:
		return nil
	case p.counter:
		return s.countBack(ctx, s.serverOf(&p.key), p.name(), back.receipts[0].Cost)
	default:
		return s.flights.do(ctx, p.key, &request{work: back})
	}
}

// giveUp gives back, as far as there is time left, what parts took whose group
// could not be decided.
func (s *Store) giveUp(ctx context.Context, parts []*part) {
	if ctx.Err() == nil {
		_ = s.undo(ctx, parts) // The caller learns why the group was not decided.
	}
}
