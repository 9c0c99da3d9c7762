package etcd

import (
	"math"

	"github.com/headgate/headgate/pace/schedule"
	"github.com/headgate/headgate/share"
)

// reservation is the part of its even share that an instance keeps whatever it asks
// for, in percent: with it, one that wakes up can begin.
const reservation = 10

// divide gives the units of a turn that each instance has, in the order of members, by
// what each has asked for in a window. To what is asked for comes what a stream of
// that size varies by: twice the root of it.
func divide(limit int64, members []string, demand func(id string) int64) []int64 {
	turns := schedule.Turns(limit, len(members))
	clients := make([]share.Client, len(members))
	for i, id := range members {
		asked := min(demand(id), limit)
		asked = min(asked+int64(2*math.Sqrt(float64(asked))), limit)
		clients[i] = share.Client{Name: id, Weight: 1, Demand: asked * turns}
	}
	terms := share.Terms{Division: share.MaxMin, Capacity: limit * turns, Reservation: reservation}
	return terms.Divide(clients)
}

// material says whether units for the same members differ by so much that it is worth
// a new plan: somebody's part by more than a twentieth and more than a unit, or that of
// somebody who wants more gains a hundredth.
func material(p *plan, units []int64, demand func(id string) int64) bool {
	turns := schedule.Turns(p.limit, len(p.members))
	for i, old := range p.units {
		gain := units[i] - old
		hungry := min(demand(p.members[i]), p.limit)*turns > old
		switch change := max(gain, -gain); {
		case change > 1 && change > old/20:
			return true
		case hungry && gain > 0 && gain > old/100:
			return true
		}
	}
	return false
}
