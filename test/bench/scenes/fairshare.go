package scenes

import (
	"github.com/headgate/headgate/test/bench/contest"
	"github.com/headgate/headgate/test/bench/limiters"
	"github.com/headgate/headgate/test/bench/servers"
)

const (
	// shareClients share the capacity, and shareWorkers ask for them at once.
	shareClients = 1024
	shareWorkers = 2
	// shareRequests are drawn among them, and asked for over and over.
	shareRequests = 1 << 14
)

// fairShare tells what a decision by shares takes beside the clock. Cycles pass and
// loans are released while it is measured, at the expense of who asks.
func fairShare(limit limiters.Limit, want contest.Outcome) (*contest.Contest, error) {
	const ours, cpu = limiters.HeadgateFairShare, "CPU"
	c := &contest.Contest{
		About: "the capacity of a service is shared by 1024 known clients, drawn at random by two goroutines; " +
			"the peer is what one writes without it, a limit of its own for each",
		Workers: shareWorkers,
		Want:    want,
		Questions: []contest.Question{
			{Of: ours, Against: limiters.TimeSince, Difference: true, Bar: barShare},
			{Of: ours, Against: limiters.TimeSince, Meter: cpu, Difference: true},
			{Of: ours, Against: contest.FastestExact, Meter: cpu},
			{Of: ours, Against: contest.FastestExact},
		},
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
	clients := everyKey(shareClients)
	drawn := newWalk(inOrder(uniform(Size{Keys: shareClients, Sequence: shareRequests})), shareWorkers)
	for _, m := range []limiters.KeyedMaker{limiters.FairShare(clients), limiters.XTimeMap()} {
		// Each client once first, so that it is known and has used up what it has where
		// requests are to be denied.
		if err := enter(c, m, limit, limiters.Room{Keys: shareClients}, drawn.again(), clients...); err != nil {
			return nil, err
		}
	}
	for i := range c.Sides {
		c.Sides[i].Meters = []contest.Meter{{Name: cpu, Read: servers.OwnCPU}}
	}
	return c, nil
}
