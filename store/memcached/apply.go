package memcached

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/compensate"
)

// maxAtOnce bounds the groups of one Apply that are decided at the same time.
const maxAtOnce = 64

// Apply implements headgate.Store. Groups without a common key are decided at the same time, and
// others one after another.
func (s *Store) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	err := s.apply(ctx, ops, decisions)
	if err != nil && !compensate.IsOutside(err) {
		compensate.Undecide(decisions[:len(ops)])
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
	if !shareKeys(groups) {
		return s.decideAll(ctx, groups)
	}
	var outside error
	for i := range groups {
		err := s.decideGroup(ctx, &groups[i])
		if err != nil && !compensate.IsOutside(err) {
			return err
		}
		outside = cmp.Or(outside, err)
	}
	return outside
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

// decideAll decides groups without a common key. Errors of another kind come before an EdgeError.
func (s *Store) decideAll(ctx context.Context, groups []group) error {
	errs := make([]error, len(groups))
	for begin := 0; begin < len(groups); begin += maxAtOnce {
		var all sync.WaitGroup
		for i := begin; i < min(begin+maxAtOnce, len(groups)); i++ {
			all.Go(func() { errs[i] = s.decideGroup(ctx, &groups[i]) })
		}
		all.Wait()
	}
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil && !compensate.IsOutside(err) }) {
		errs = slices.DeleteFunc(errs, compensate.IsOutside)
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
		compensate.Undecide(g.decisions)
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
		case p.corrects():
			return s.correctCounted(ctx, p)
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
