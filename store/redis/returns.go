package redis

import (
	"context"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/internal/store/script"
)

// Return implements headgate.Store. The receipts go in one pipeline for each node. If a node's
// breaker is open, its units stay counted, and Return gives an error.
func (s *Store) Return(ctx context.Context, receipts []headgate.Receipt) error {
	return s.returnBy(ctx, receipts, script.ReturnCall)
}

// returnCall gives the keys and arguments with which a receipt is returned.
type returnCall func(*script.Names, *script.Plan, *headgate.Receipt, headgate.Instant, time.Duration) (keys, args []string)

func (s *Store) returnBy(ctx context.Context, receipts []headgate.Receipt, callOf returnCall) error {
	if !s.made() {
		return headgate.ErrNotMade
	}
	var calls []call
	var away error
	for i := range receipts {
		r := &receipts[i]
		if r.Empty() || r.Units() == 0 {
			continue
		}
		p := s.issuer(r)
		if p == nil {
			continue // The policy was freed, so its units have expired.
		}
		if err := s.awayAt(script.PlaceIn(r.Place)); err != nil {
			away = err
			continue
		}
		if keys, args := callOf(s.names, p, r, s.now(), s.slack); len(keys) > 0 {
			calls = append(calls, call{keys: keys, args: args})
		}
	}
	if err := s.runAll(ctx, &s.giveBack, calls, "return units"); err != nil {
		return err
	}
	return away
}

// ReturnLast implements headgate.LastReturner.
func (s *Store) ReturnLast(ctx context.Context, r *headgate.Receipt) (returned bool, err error) {
	if !s.made() {
		return false, headgate.ErrNotMade
	}
	if r.Empty() || r.Cost == 0 {
		return false, nil
	}
	p := s.issuer(r)
	if p == nil {
		return false, nil // The policy was freed, so the departures that it booked have passed.
	}
	if err := s.awayAt(script.PlaceIn(r.Place)); err != nil {
		return false, err
	}
	keys, args := script.ReturnLastCall(s.names, p, r, s.now(), s.slack)
	if len(keys) == 0 {
		return false, nil
	}
	reply := new(int64) // The goroutine of a cancelled call may still write to reply.
	err = s.runAll(ctx, &s.giveBack, []call{{keys, args, reply}}, "return a booking")
	return err == nil && *reply == 1, err
}

// Forget implements headgate.Store. Forget deletes the counts of the prepared policies, of other
// policies of their families, and of bans. The calls go in one pipeline for each node.
func (s *Store) Forget(ctx context.Context, ops []headgate.Op) error {
	if !s.made() {
		return headgate.ErrNotMade
	}
	var calls []call
	families := s.families()
	for i := range ops {
		place := script.PlaceOf(ops[i].Key, ops[i].Window)
		if err := s.awayAt(place); err != nil {
			return err
		}
		for some := range slices.Chunk(families, maxForgotten) {
			keys, args := script.ForgetCall(s.names, place, some)
			calls = append(calls, call{keys: keys, args: args})
		}
	}
	return s.runAll(ctx, &s.forget, calls, "forget counts")
}

// awayAt gives an error if the node of a place has an open breaker. Only decisions probe such a
// node.
func (s *Store) awayAt(place script.Place) error {
	l := s.queues.queue(s.names.Slot(place))
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
	done := make(chan error, 1)
	go func() { done <- s.runMoving(client, p, calls) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return couldNotAt(s.config.Kind, do, err)
	}
	return nil
}

// runMoving runs the calls until they succeed or fail. It sends calls again if the server refused
// them because their slot is moving, up to maxAttempts times in total.
func (s *Store) runMoving(client rueidis.Client, p *program, calls []call) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Timeout)
	defer cancel()
	for attempt := range maxAttempts {
		calls, err = runOnce(ctx, client, p, calls)
		if err == nil {
			return nil
		}
		if len(calls) == 0 {
			s.queues.alarm()
			return err
		}
		pause(ctx, time.Duration(attempt)*time.Millisecond)
	}
	return err
}

// runOnce gives the first error. If moving slots are the only reason, it also gives the calls that
// were not run.
func runOnce(ctx context.Context, client rueidis.Client, p *program, calls []call) (again []call, err error) {
	var other error
	for i, result := range p.run(ctx, client, calls) {
		fault := result.Error()
		switch {
		case fault == nil && calls[i].reply != nil:
			*calls[i].reply, other = result.AsInt64()
		case fault == nil:
		case moving(fault):
			again, err = append(again, calls[i]), fault
		case other == nil:
			other = fault
		}
	}
	if other != nil {
		return nil, other
	}
	return again, err
}
