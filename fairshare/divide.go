package fairshare

import "github.com/headgate/headgate/share"

const (
	// welcomePart is how many newcomers there are room for beside the established clients:
	// one for each so many of them, and one always. More share what these would have until
	// they are established, so that a stream of invented names takes little of anybody's
	// share.
	welcomePart = 4
	// latePart is the same of clients that are not lasting beside those that are.
	latePart = 4
)

// room gives for how many newcomers there are default shares. It is for all of them
// where nobody is established yet.
func (c *cycle) room() int64 {
	if c.established == 0 {
		return c.light
	}
	return max(1, c.settled/welcomePart)
}

// lateRoom returns the most default shares that late clients, newcomers and the others
// have together. ok is false when no bound holds: no client is lasting, or names are trusted.
func (c *cycle) lateRoom() (room int64, ok bool) {
	if c.lasting == 0 || c.TrustNames {
		return 0, false
	}
	return max(1, c.kept/latePart), true
}

// lateWeight returns the default shares that they would have without a bound.
func (c *cycle) lateWeight() int64 {
	weight := c.settled - c.kept + min(c.light, c.room())
	if c.others != nil {
		weight++
	}
	return weight
}

// party is one of those that a capacity is divided among: the cell of a client, or several
// parties that have one share together.
type party struct {
	cell    *cell
	members []party
	weight  int64 // of members together
	// restrained parties have their default share and what the demands of all leave.
	restrained bool
}

// parties returns those that the capacity is divided among: the lasting clients, the late
// ones, the newcomers, and the others. Newcomers are one party when there is no room for all,
// and so are all that are not lasting.
func (c *cycle) parties() []party {
	var all, late, newcomers []party
	for _, x := range c.all {
		switch {
		case x.common:
		case !x.client.established():
			newcomers = append(newcomers, party{cell: x})
		case c.protects(x.client):
			all = append(all, party{cell: x})
		default:
			late = append(late, party{cell: x})
		}
	}
	if c.light > c.room() {
		newcomers = []party{{members: newcomers, weight: c.room(), restrained: true}}
	}
	late = append(late, newcomers...)
	if c.others != nil {
		late = append(late, party{cell: c.others, restrained: true})
	}
	if room, ok := c.lateRoom(); ok && c.lateWeight() > room {
		return append(all, party{members: late, weight: room, restrained: true})
	}
	return append(all, late...)
}

// asks gives what the client of a cell asked for in the last cycle.
func (x *cell) asks() share.Client {
	return share.Client{Name: x.client.name, Weight: x.client.weight, Demand: x.client.demand}
}

// asks gives what a party asked for in the last cycle.
func (p *party) asks() share.Client {
	if p.cell != nil {
		return p.cell.asks()
	}
	together := share.Client{Weight: p.weight}
	for i := range p.members {
		together.Demand = min(share.MaxDemand, together.Demand+p.members[i].asks().Demand)
	}
	return together
}

func asking(cells []*cell) []share.Client {
	clients := make([]share.Client, len(cells))
	for i, x := range cells {
		clients[i] = x.asks()
	}
	return clients
}

func demands(all []party) []share.Client {
	clients := make([]share.Client, len(all))
	for i := range all {
		clients[i] = all[i].asks()
	}
	return clients
}

// fair sets the default shares.
func (c *cycle) fair() { setFair(c.Capacity, c.parties()) }

func setFair(capacity int64, all []party) {
	for i, n := range share.Default(capacity, demands(all)) {
		if x := all[i].cell; x != nil {
			x.fair.Store(n)
		} else {
			setFair(n, all[i].members)
		}
	}
}

// divide sets the default shares and the sizes of the cycle's clients.
//
// Who has joined in the cycle before has not had its chance to ask for its default
// share: the welcome ones are taken to have done so. The others, newcomers for
// whom there is no room, and late clients for whom there is none, have their default shares
// and what no other client asks for: else invented names could claim what clients
// want to borrow.
func (c *cycle) divide() {
	all := c.parties()
	setFair(c.Capacity, all)
	c.setSizes(c.Capacity, all)
}

func (c *cycle) setSizes(capacity int64, all []party) {
	clients := demands(all)
	fair := share.Default(capacity, clients)
	for i := range all {
		if x := all[i].cell; x != nil && !x.common && x.client.welcome {
			clients[i].Demand = max(clients[i].Demand, fair[i])
		}
	}
	restrain(capacity, all, clients, fair)
	for i, n := range (share.Terms{Division: c.Division, Capacity: capacity, Reservation: c.Reservation}).Divide(clients) {
		if x := all[i].cell; x != nil {
			x.size.Store(n)
		} else {
			c.setSizes(n, all[i].members)
		}
	}
}

// restrain lowers the demands of restrained parties to their default shares and what the
// demands of all leave.
func restrain(capacity int64, all []party, clients []share.Client, fair []int64) {
	rest := capacity
	for i := range all {
		demand := clients[i].Demand
		if all[i].restrained {
			demand = min(demand, fair[i])
		}
		rest -= min(demand, capacity)
	}
	for i := range all {
		if all[i].restrained {
			more := max(0, min(clients[i].Demand-fair[i], rest))
			clients[i].Demand = min(clients[i].Demand, fair[i]+more)
			rest -= more
		}
	}
}
