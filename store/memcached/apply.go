package memcached

import (
	"context"
	"errors"
	"sync"

	"github.com/headgate/headgate"
)

// maxAtOnce bounds the groups of one Apply that are decided at the same time.
const maxAtOnce = 64

// Apply implements headgate.Store. Groups without a common key are decided at the same time, and
// others one after another.
func (s *Store) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	err := s.apply(ctx, ops, decisions)
	if err != nil {
		for i := range ops {
			decisions[i] = headgate.Undecided()
		}
	}
	return err
}

func (s *Store) apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	if err := s.usable(); err != nil {
		return err
	}
	groups, err := s.groupsOf(ops, decisions)
	if err != nil {
		return err
	}
	if len(groups) == 1 {
		return s.decideGroup(ctx, &groups[0])
	}
	if err := s.away(groups); err != nil {
		return err
	}
	if shareKeys(groups) {
		for i := range groups {
			if err := s.decideGroup(ctx, &groups[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return s.decideAll(ctx, groups)
}

// away gives an error when a server of one of several groups has an open breaker. Without this
// check, the call would fail after other groups have taken units.
func (s *Store) away(groups []group) error {
	for i := range groups {
		for _, p := range groups[i].parts {
			if n := s.serverOf(&p.key); n.breaker.Refuses(n.clock.mono()) {
				n.faults.Add(1)
				return unavailable(n.addr)
			}
		}
	}
	return nil
}

// decideAll decides groups without a common key.
func (s *Store) decideAll(ctx context.Context, groups []group) error {
	errs := make([]error, len(groups))
	for begin := 0; begin < len(groups); begin += maxAtOnce {
		var all sync.WaitGroup
		for i := begin; i < min(begin+maxAtOnce, len(groups)); i++ {
			all.Go(func() { errs[i] = s.decideGroup(ctx, &groups[i]) })
		}
		all.Wait()
	}
	return errors.Join(errs...)
}

// decideGroup decides a group, and fills its decisions.
func (s *Store) decideGroup(ctx context.Context, g *group) error {
	var err error
	if len(g.parts) == 1 {
		err = s.decideAlone(ctx, g.parts[0])
	} else {
		err = s.decideParts(ctx, g)
	}
	if err != nil {
		return err
	}
	for _, p := range g.parts {
		s.serverOf(&p.key).decisions.Add(uint64(len(p.turns)))
		for i, place := range p.places {
			g.decisions[place] = p.decisions[i]
		}
	}
	return nil
}

// decideAlone decides a part that is its whole group.
func (s *Store) decideAlone(ctx context.Context, p *part) error {
	switch {
	case p.counter:
		if err := s.dateParts(ctx, []*part{p}); err != nil {
			return err
		}
		switch {
		case p.refunds():
			return s.refundCounted(ctx, p)
		case p.takesNothing():
			return s.readAndTry(ctx, p)
		}
		return s.count(ctx, p)
	case p.looks():
		return s.readAndTry(ctx, p)
	default:
		if err := s.flights.do(ctx, p.key, &request{work: p}); err != nil {
			return err
		}
		return p.fault
	}
}

// readAndTry decides a part that takes nothing.
func (s *Store) readAndTry(ctx context.Context, p *part) error {
	var h held
	if err := s.serverOf(&p.key).read(ctx, p.name(), &h); err != nil {
		return err
	}
	_, err := s.try(ctx, p, &h)
	return err
}
