package scenes

import (
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
)

// lone compares the limiters without keys, and the limits of the machine.
func lone(limit limiters.Limit, want contest.Outcome) (*contest.Contest, error) {
	c := &contest.Contest{
		About:     "a limiter without keys, one goroutine; the sides that begin with time.Since are the limits of the machine",
		Workers:   1,
		Want:      want,
		Questions: []contest.Question{{Of: limiters.HeadgateSingle, Against: limiters.TimeSince, Bar: barLone}},
	}
	for _, m := range append(limiters.Floors(), limiters.LoneLimiters()...) {
		if want == contest.Deny && m.NeverDenies && m.Kind != contest.Floor {
			continue
		}
		l, err := m.New(limit)
		if err != nil {
			return nil, err
		}
		if want == contest.Deny {
			l.Take(1)
		}
		c.Sides = append(c.Sides, contest.Side{
			Name: m.Name, Kind: m.Kind,
			Run: func(_, n int) contest.Tally { return l.Take(n) },
		})
		if m.Kind == contest.Floor && m.Name != limiters.TimeSince {
			c.Questions = append(c.Questions, contest.Question{Of: m.Name, Against: limiters.TimeSince})
		}
		if m.Kind == contest.Peer || m.Name == limiters.TimeSinceSwap {
			c.Questions = append(c.Questions, contest.Question{Of: limiters.HeadgateSingle, Against: m.Name})
		}
	}
	return c, nil
}
