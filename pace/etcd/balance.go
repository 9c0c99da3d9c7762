package etcd

import (
	"math"

	"github.com/headgate/headgate/pace/schedule"
	"github.com/headgate/headgate/share"
)

// reservation is the part of its even share that an idle instance keeps, in percent. It lets the
// instance start when calls arrive.
const reservation = 10

// headroom is the largest excess over an instance's demand, in square roots of the demand: a random
// stream of that size varies by as much.
const headroom = 2

// divide returns the units of a turn for each instance, in the order of members. demand gives each
// report in hundredths of a unit, waiting callers included. Demand is met first, by max-min. Then
// headroom is divided, and then the rest.
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

// material reports whether new units for the same members are worth a new plan: a part changes by more
// than a twentieth and more than a unit, or an instance with unmet demand gains a hundredth.
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
