package fairshare

import "github.com/headgate/headgate/internal/share"

const (
	// welcomePart bounds newcomers: there is one default share for newcomers per welcomePart
	// units of established weight, and at least one. Further newcomers share these default
	// shares until they are established. So a stream of invented names takes little from
	// each client.
	welcomePart = 4
	// latePart bounds late clients in the same way, relative to the weight of lasting and
	// pinned clients.
	latePart = 4
)

// newcomerRoom returns the number of default shares for newcomers. Without established
// clients, and with trusted names, each newcomer has a default share.
func (c *cycle) newcomerRoom() int64 {
	if c.established == 0 || c.TrustNames {
		return c.newcomers
	}
	return max(1, c.establishedWeight/welcomePart)
}

// lateRoom returns the most default shares that late clients, newcomers and Others
// have together. ok is false when no bound holds: no client is lasting, or names are trusted.
func (c *cycle) lateRoom() (room int64, ok bool) {
	if c.lasting == 0 || c.TrustNames {
		return 0, false
	}
	return max(1, c.protectedWeight/latePart), true
}

// lateWeight returns the number of default shares that late clients, newcomers and Others
// would have without a bound.
func (c *cycle) lateWeight() int64 {
	weight := c.establishedWeight - c.protectedWeight + min(c.newcomers, c.newcomerRoom())
	if c.others != nil {
		weight++
	}
	return weight
}

// participant is one recipient in a division of capacity: a client's cell, or several
// participants with one share together.
type participant struct {
	cell    *cell
	members []participant
	weight  int64 // sum of the members' weights
	// restrained participants get their default share, and capacity that no demand uses.
	restrained bool
}

// participants returns the recipients of the capacity: lasting clients, late clients,
// newcomers and Others. Newcomers are one participant if they exceed newcomerRoom. All
// clients that are not lasting are one participant if they exceed lateRoom.
func (c *cycle) participants() []participant {
	var all, late, newcomers []participant
	for _, x := range c.all {
		switch {
		case x.isOthers:
		case !x.client.established():
			newcomers = append(newcomers, participant{cell: x})
		case c.protects(x.client):
			all = append(all, participant{cell: x})
		default:
			late = append(late, participant{cell: x})
		}
	}
	if c.newcomers > c.newcomerRoom() {
		newcomers = []participant{{members: newcomers, weight: c.newcomerRoom(), restrained: true}}
	}
	late = append(late, newcomers...)
	if c.others != nil {
		late = append(late, participant{cell: c.others, restrained: true})
	}
	if room, ok := c.lateRoom(); ok && c.lateWeight() > room {
		return append(all, participant{members: late, weight: room, restrained: true})
	}
	return append(all, late...)
}

// shareClient returns the demand of the cell's client in the last cycle.
func (x *cell) shareClient() share.Client {
	return share.Client{Name: x.client.name, Weight: x.client.weight, Demand: x.client.demand}
}

// shareClient returns the demand of the participant in the last cycle.
func (p *participant) shareClient() share.Client {
	if p.cell != nil {
		return p.cell.shareClient()
	}
	together := share.Client{Weight: p.weight}
	for i := range p.members {
		together.Demand = min(share.MaxDemand, together.Demand+p.members[i].shareClient().Demand)
	}
	return together
}

func shareClients(cells []*cell) []share.Client {
	clients := make([]share.Client, len(cells))
	for i, x := range cells {
		clients[i] = x.shareClient()
	}
	return clients
}

func participantClients(all []participant) []share.Client {
	clients := make([]share.Client, len(all))
	for i := range all {
		clients[i] = all[i].shareClient()
	}
	return clients
}

func (c *cycle) fair() { setFair(c.Capacity, c.participants()) }

func setFair(capacity int64, all []participant) {
	for i, n := range share.Default(capacity, participantClients(all)) {
		if x := all[i].cell; x != nil {
			x.fair.Store(n)
		} else {
			setFair(n, all[i].members)
		}
	}
}

// divide sets the default shares and the sizes of the cycle's clients.
//
// A client that joined in the previous cycle could not yet show its full demand. A welcome
// client counts as if it had requested its default share. Restrained participants are
// Others, and newcomers and late clients above their bounds. They get their default shares
// and what no other client requested, so invented names cannot claim capacity that
// clients want to borrow.
func (c *cycle) divide() {
	all := c.participants()
	setFair(c.Capacity, all)
	c.setSizes(c.Capacity, all)
}

func (c *cycle) setSizes(capacity int64, all []participant) {
	clients := participantClients(all)
	fair := share.Default(capacity, clients)
	for i := range all {
		if x := all[i].cell; x != nil && !x.isOthers && x.client.welcome {
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

// restrain caps the demands of restrained participants at their default shares, plus
// capacity that all demands together leave unused.
func restrain(capacity int64, all []participant, clients []share.Client, fair []int64) {
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
