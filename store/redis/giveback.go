package redis

import (
	"context"

	"github.com/headgate/headgate"
)

// Return implements headgate.Store. The receipts travel in one pipeline.
func (s *Store) Return(ctx context.Context, receipts []headgate.Receipt) error {
	var calls []call
	for i := range receipts {
		r := &receipts[i]
		if r.Empty() || r.Cost == 0 {
			continue
		}
		p := s.plan(r.Policy)
		if p == nil {
			return headgate.ErrUnknownPolicy
		}
		calls = append(calls, s.returnOf(p, r))
	}
	if len(calls) == 0 {
		return nil
	}
	for _, result := range s.giveBack.run(ctx, s.client, calls) {
		if err := result.Error(); err != nil {
			return couldNot("return what was taken", err)
		}
	}
	return nil
}

// returnOf renders a receipt as lua/give_back.lua reads it.
func (s *Store) returnOf(p *plan, r *headgate.Receipt) call {
	at := placeIn(r.Place)
	name := at.name()
	c := call{
		keys: []string{name, noteOf(name, r.Nonce)},
		args: []string{s.now(), s.slack, p.packed, ""},
	}
	from := int64(r.From) / 1000
	if p.policy.Algorithm == headgate.SlidingLog {
		c.keys = append(c.keys, listOf(name))
		c.args[3] = packed(r.Cost, from)
		return c
	}
	took := p.spanOf(r.Cost)
	ends := span{from, int64(r.FromPart)}.add(took, p.den)
	c.args[3] = packed(r.Cost, ends.us, ends.part, took.us, took.part, int64(r.Returned))
	return c
}
