package etcd

import (
	"math"

	"github.com/headgate/headgate/pace/schedule"
	"github.com/headgate/headgate/share"
)

// reservation is the part of its even share that an instance keeps whatever it asks
// for, in percent: with it, one that wakes up can begin.
const reservation = 10

// headroom is what an instance may get beyond its demand, in square roots of its demand:
// a stream of that size varies by so much.
const headroom = 2

// divide returns the units of a turn that each instance has, in the order of members, by
// what each reports in hundredths of a unit. Demand comes first: it is met by max-min, callers that
// wait included. Headroom is divided from what that leaves, then the rest.
func divide(limit int64, members []string, demand func(id string) int64) []int64 {
	turns := schedule.Turns(limit, len(members))
	terms := share.Terms{Division: share.MaxMin, Capacity: limit * turns, Reservation: reservation}
	reserved := terms.Capacity*reservation/100/int64(max(1, len(members))) + 1
	clients, more := make([]share.Client, len(members)), make([]share.Client, len(members))
	left := terms.Capacity
	for i, id := range members {
		asked := min(demand(id), limit*hundredths)
		clients[i] = share.Client{Name: id, Weight: 1, Demand: asked * turns / hundredths}
		more[i] = clients[i]
		more[i].Demand = min(int64(headroom*math.Sqrt(float64(asked)/hundredths)*float64(turns)), terms.Capacity-clients[i].Demand)
		left -= min(left, max(clients[i].Demand, reserved))
	}
	var scratch share.Scratch
	for i, n := range scratch.Fill(left, more) {
		clients[i].Demand += n
	}
	return terms.Divide(clients)
}

// material says whether units for the same members differ by so much that it is worth
// a new plan: somebody's part by more than a twentieth and more than a unit, or that of
// somebody who wants more gains a hundredth.
func material(p *plan, units []int64, demand func(id string) int64) bool {
	turns := schedule.Turns(p.limit, len(p.members))
	for i, old := range p.units {
		gain := units[i] - old
		hungry := min(demand(p.members[i]), p.limit*hundredths)*turns/hundredths > old
		switch change := max(gain, -gain); {
		case change > 1 && change > old/20:
			return true
		case hungry && gain > 0 && gain > old/100:
			return true
		}
	}
	return false
}
