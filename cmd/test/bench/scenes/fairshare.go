package scenes

import (
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
	"github.com/headgate/headgate/cmd/test/bench/servers"
)

const (
	// shareClients is the number of clients of the capacity. shareWorkers is the number of
	// goroutines that decide for them concurrently.
	shareClients = 1024
	shareWorkers = 2
	// shareRequests is the length of the random sequence of clients. It repeats.
	shareRequests = 1 << 14
)

// fairShare compares the cost of a fair-share decision with a reading of the clock. The
// cost includes the end of cycles and the release of loans.
func fairShare(limit limiters.Limit, want contest.Outcome) (*contest.Contest, error) {
	const ours, cpu = limiters.HeadgateFairShare, "CPU"
	c := &contest.Contest{
		About: "fair share of a capacity among 1024 known clients in random order, two goroutines; " +
			"the peer gives each client its own limit",
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
		// The limiter first decides for each client once. It then knows all clients, and in
		// the scene that denies, each client has used up its share.
		if err := enter(c, m, limit, limiters.Room{Keys: shareClients}, drawn.again(), clients...); err != nil {
			return nil, err
		}
	}
	for i := range c.Sides {
		c.Sides[i].Meters = []contest.Meter{{Name: cpu, Read: servers.OwnCPU}}
	}
	return c, nil
}
