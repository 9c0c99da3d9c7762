package scenes

import (
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
)

// oneKey compares the keyed limiters when all requests have the same key.
func oneKey(limit limiters.Limit, want contest.Outcome, workers int) (*contest.Contest, error) {
	c := &contest.Contest{
		About:     "a keyed limiter with the full Decision; all requests have the same key",
		Workers:   workers,
		Want:      want,
		Questions: []contest.Question{{Of: limiters.HeadgateKeyed, Against: limiters.TimeSince, Bar: barKeyed}},
	}
	if workers > 1 {
		c.Questions = nil // The workers contend for the key, so the clock is not a useful lower limit.
	}
	clock := limiters.Floors()[0]
	floor, err := clock.New(limit)
	if err != nil {
		return nil, err
	}
	c.Sides = []contest.Side{{
		Name: clock.Name, Kind: clock.Kind,
		Run: func(_, n int) contest.Tally { return floor.Take(n) },
	}}
	key := newWalk([]string{"customer-1234567"}, workers)
	for _, m := range limiters.KeyedLimiters() {
		if err := enter(c, m, limit, limiters.Room{Keys: 1}, key.again()); err != nil {
			return nil, err
		}
		if m.Kind == contest.Peer {
			c.Questions = append(c.Questions, contest.Question{Of: limiters.HeadgateKeyed, Against: m.Name, Bar: barPeers})
		}
	}
	return c, nil
}

// manyKeys compares the keyed limiters on random keys. The limiters already hold all keys.
func manyKeys(size Size, draw func(Size) []int) (*contest.Contest, error) {
	c := &contest.Contest{
		About:   "a keyed limiter that holds all keys; random keys, on all processors",
		Workers: processors(),
		Want:    contest.Allow,
		Questions: []contest.Question{
			{Of: limiters.HeadgateKeyed, Against: contest.FastestExact, Bar: barMillion},
			{Of: limiters.HeadgateMany, Against: contest.FastestExact, Bar: barBatching},
		},
	}
	sequence := newWalk(inOrder(draw(size)), c.Workers)
	known := everyKey(size.Keys)
	for _, m := range append(limiters.KeyedLimiters(), limiters.HeadgateTakeMany()) {
		if err := enter(c, m, limiters.Ample(), limiters.Room{Keys: size.Keys}, sequence.again(), known...); err != nil {
			return nil, err
		}
		if m.Kind == contest.Peer {
			c.Questions = append(c.Questions, contest.Question{Of: limiters.HeadgateKeyed, Against: m.Name})
		}
	}
	return c, nil
}

// enter adds a limiter that holds the known keys. For a contest that denies, it first uses
// up the limit of all keys of the walk.
func enter(c *contest.Contest, m limiters.KeyedMaker, l limiters.Limit, r limiters.Room, w *walk, known ...string) error {
	k, err := m.New(l, r)
	if err != nil {
		return err
	}
	if len(known) > 0 {
		k.Take(known, 0, len(known))
	}
	if c.Want == contest.Deny {
		k.Take(w.keys, 0, len(w.keys))
	}
	c.Sides = append(c.Sides, contest.Side{
		Name: m.Name, Kind: m.Kind, Inexact: m.Inexact, MayFail: m.MayFail,
		Run: func(worker, n int) contest.Tally { return k.Take(w.keys, w.step(worker, n), n) },
	})
	before := c.Close
	c.Close = func() {
		k.Close()
		if before != nil {
			before()
		}
	}
	return nil
}
