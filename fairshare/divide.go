package fairshare

import "github.com/headgate/headgate/share"

// welcomePart is how many newcomers there are room for beside the established clients:
// one for each so many of them, and one always. More share what these would have until
// they are established, so that a stream of invented names takes little of anybody's
// share.
const welcomePart = 4

// room gives for how many newcomers there are default shares. It is for all of them
// where nobody is established yet.
func (c *cycle) room() int64 {
	if c.established == 0 {
		return c.light
	}
	return max(1, c.settled/welcomePart)
}

// parties are those that the capacity is divided among: the established clients, the
// newcomers, each for itself or as one party when there is no room for all, and the
// others. In cells are the cells of clients, in newcomers those of one party.
type parties struct {
	clients   []share.Client
	cells     []*cell
	newcomers []*cell
	others    *cell
}

// parties lists them, with what they asked for.
func (c *cycle) parties() *parties {
	p := &parties{others: c.others}
	together := c.light > c.room()
	for _, x := range c.all {
		switch {
		case x.common:
		case together && !x.client.established():
			p.newcomers = append(p.newcomers, x)
		default:
			p.cells = append(p.cells, x)
			p.clients = append(p.clients, x.asks())
		}
	}
	if together {
		p.clients = append(p.clients, share.Client{Weight: c.room(), Demand: sum(asking(p.newcomers))})
	}
	if p.others != nil {
		p.clients = append(p.clients, p.others.asks())
	}
	return p
}

// asks gives what the client of a cell asked for in the last cycle.
func (x *cell) asks() share.Client {
	return share.Client{Name: x.client.name, Weight: x.client.weight, Demand: x.client.demand}
}

func asking(cells []*cell) []share.Client {
	clients := make([]share.Client, len(cells))
	for i, x := range cells {
		clients[i] = x.asks()
	}
	return clients
}

func sum(clients []share.Client) (demand int64) {
	for i := range clients {
		demand = min(share.MaxDemand, demand+clients[i].Demand)
	}
	return demand
}

// fair sets the default shares, and gives those of the parties.
func (c *cycle) fair() (*parties, []int64) {
	p := c.parties()
	fair := share.Default(c.Capacity, p.clients)
	for i, x := range p.cells {
		x.fair.Store(fair[i])
	}
	at := len(p.cells)
	if len(p.newcomers) > 0 {
		for i, n := range share.Default(fair[at], asking(p.newcomers)) {
			p.newcomers[i].fair.Store(n)
		}
		at++
	}
	if p.others != nil {
		p.others.fair.Store(fair[at])
	}
	return p, fair
}

// divide sets the default shares and the sizes of the cycle's clients.
//
// Who has joined in the cycle before has not had its chance to ask for its default
// share: the welcome ones are taken to have done so. The others, and newcomers for
// whom there is no room, have their default shares and what nobody else asks for: else
// names that somebody invents could claim what clients want to borrow.
func (c *cycle) divide() {
	p, fair := c.fair()
	for i, x := range p.cells {
		if x.client.welcome {
			p.clients[i].Demand = max(p.clients[i].Demand, fair[i])
		}
	}
	p.restrain(c.Capacity, fair)
	sizes := share.Terms{Division: c.Division, Capacity: c.Capacity, Reservation: c.Reservation}.Divide(p.clients)
	for i, x := range p.cells {
		x.size.Store(sizes[i])
	}
	at := len(p.cells)
	if len(p.newcomers) > 0 {
		among := share.Terms{Division: c.Division, Capacity: sizes[at], Reservation: c.Reservation}
		for i, n := range among.Divide(asking(p.newcomers)) {
			p.newcomers[i].size.Store(n)
		}
		at++
	}
	if p.others != nil {
		p.others.size.Store(sizes[at])
	}
}

// restrain lowers the demand of the parties behind the cells to their default shares
// and what the demands of all leave.
func (p *parties) restrain(capacity int64, fair []int64) {
	rest := capacity
	for i := range p.clients {
		demand := p.clients[i].Demand
		if i >= len(p.cells) {
			demand = min(demand, fair[i])
		}
		rest -= min(demand, capacity)
	}
	for i := len(p.cells); i < len(p.clients); i++ {
		more := max(0, min(p.clients[i].Demand-fair[i], rest))
		p.clients[i].Demand = min(p.clients[i].Demand, fair[i]+more)
		rest -= more
	}
}
