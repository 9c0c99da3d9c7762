package prefetch

import (
	"context"
	"errors"
	"fmt"

	"github.com/headgate/headgate"
)

// maxRounds bounds how often a group waits for units. After that the source decides it.
const maxRounds = 8

// await waits for the units that a group lacks, until the group is decided or maxRounds is
// reached.
func (s *Store) await(ctx context.Context, g *group) error {
	for rounds := 0; g.state == flying; rounds++ {
		for i := range g.parts {
			if err := s.wait(ctx, g, &g.parts[i]); err != nil {
				return err
			}
		}
		g.plain = g.plain || rounds == maxRounds
		s.round(g)
	}
	return nil
}

// wait waits for the flight of one key, if there is one, and takes the units it brought.
func (s *Store) wait(ctx context.Context, g *group, p *keyOps) error {
	f := p.flight
	if f == nil {
		return nil
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return fmt.Errorf("prefetch: the store did not answer in time: check its latency, or raise store_timeout: %w", ctx.Err())
	}
	p.flight = nil
	if f.err != nil {
		p.leads = false
		if errors.Is(f.err, headgate.ErrUnknownPolicy) {
			g.plain = true // Another policy of the flight was released. The source decides this group alone.
			return nil
		}
		return f.err
	}
	l := &f.grants[p.grant]
	switch {
	case l.odd:
		g.plain = true
	case p.leads && !l.denied:
		p.taken, p.kept, p.nonce = true, true, l.kept.nonce
		p.at, p.ceiling, p.estimate = l.kept.at, l.kept.ceiling, l.kept.estimate(s.now())
		p.said, p.left, p.lacks = l.said, l.left, false
	case l.denied && p.cost >= l.least:
		p.said, p.refused, p.denial, p.lacks = l.said, true, true, false
	}
	p.leads = false
	return nil
}

// leave ends the waiting of a group. Other groups may then use the units that a flight kept
// for it.
func (s *Store) leave(g *group) {
	for i := range g.parts {
		p := &g.parts[i]
		if p.leads && p.flight != nil {
			s.abandon(p)
		}
		if !p.joined {
			continue
		}
		p.joined = false
		s.flights.mu.Lock()
		if sl := s.flights.slots[flightKey{p.tag, p.shape}]; sl != nil {
			sl.waiting -= p.cost
		}
		s.flights.sweep(p)
		s.flights.mu.Unlock()
	}
	s.putBackAll(g, true)
}

// abandon gives up the units that a flight keeps for the group that began it. All keys of a
// flight belong to one such group.
func (s *Store) abandon(p *keyOps) {
	f := p.flight
	f.mu.Lock()
	if !f.landed {
		f.abandoned = true
	}
	kept := !f.abandoned // A flight that was abandoned before it landed has kept nothing.
	f.mu.Unlock()
	if !kept {
		return
	}
	<-f.done // The flight has its answer, so this wait is short.
	if l := &f.grants[p.grant]; f.err == nil && !l.denied && !l.odd {
		s.giveBack(p.tag, l.kept.nonce, p.cost)
	}
}
