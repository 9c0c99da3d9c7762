package redis

import (
	"context"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/breaker"
	"github.com/headgate/headgate/store/redis/script"
)

// Return implements headgate.Store. The receipts travel in one pipeline for each
// node; what belongs to a node that is known to be away stays counted, and is an error.
func (s *Store) Return(ctx context.Context, receipts []headgate.Receipt) error {
	var calls []call
	var away error
	for i := range receipts {
		r := &receipts[i]
		if r.Empty() || r.Cost == 0 {
			continue
		}
		p := s.plan(r.Policy)
		if p == nil {
			return headgate.ErrUnknownPolicy
		}
		if err := s.awayAt(script.PlaceIn(r.Place)); err != nil {
			away = err
			continue
		}
		keys, args := script.ReturnCall(s.names, p, r, s.now(), s.slack)
		calls = append(calls, call{keys, args})
	}
	if err := s.runAll(ctx, &s.giveBack, calls, "return what was taken"); err != nil {
		return err
	}
	return away
}

// Forget implements headgate.Store. The ops travel in one pipeline for each node.
func (s *Store) Forget(ctx context.Context, ops []headgate.Op) error {
	calls := make([]call, len(ops))
	for i := range ops {
		place := script.PlaceOf(ops[i].Key, ops[i].Window)
		if err := s.awayAt(place); err != nil {
			return err
		}
		calls[i].keys, calls[i].args = script.ForgetCall(s.names, place)
	}
	return s.runAll(ctx, &s.forget, calls, "forget what was counted")
}

// awayAt gives the error of a node that is left alone. Only decisions probe it.
func (s *Store) awayAt(place script.Place) error {
	l := s.lanes.of(s.names.Slot(place))
	if l.breaker.State() != breaker.Closed {
		return l.away()
	}
	return nil
}

// runAll runs calls of one program, and gives the first error.
func (s *Store) runAll(ctx context.Context, p *program, calls []call, do string) error {
	if len(calls) == 0 {
		return nil
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	client, err := s.link.get(ctx)
	if err != nil {
		return err
	}
	for _, result := range p.run(ctx, client, calls) {
		if err := result.Error(); err != nil {
			return couldNot(do, err)
		}
	}
	return nil
}
