package state

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
)

// divider computes the targets of the claims of a resource. It keeps buffers.
type divider struct {
	scratch share.Scratch
	clients []share.Client
	owners  []*claim        // of each client
	least   map[int64]int64 // the smallest unmet size for each weight
	needy   []*claim
	excess  []*claim
}

// divide sets the targets of all claims. turn is how long a claim keeps the unit of an equal
// remainder. It reports whether some claim gets less than it wants.
func (d *divider) divide(r *resource, now headgate.Instant, turn time.Duration) (scarce bool) {
	r.order()
	var wants, aims [MaxBands]int64
	var kept int64
	for i, c := range r.claims {
		c.at, c.target = i, 0
		clear(c.aims)
		if c.learning {
			kept += c.keep()
			continue
		}
		for _, b := range c.all() {
			wants[r.band(b.Band)] += b.Wants
		}
	}
	r.divided, r.drifted, r.levels = now, 0, [MaxBands]float64{}
	if !r.terms.Algorithm.divides() {
		d.undivided(r)
		return false
	}
	r.floors(max(r.capacity-r.unknown-kept, 0), &wants, &aims)
	for band := range r.bands() {
		if wants[band] > 0 {
			scarce = aims[band] < wants[band] || scarce
			d.divideBand(r, band, aims[band], wants[band], now, turn)
		}
	}
	return scarce
}

// order sorts the claims by since. Most divisions find them in order.
func (r *resource) order() {
	last := headgate.Instant(math.MinInt64)
	for _, c := range r.claims {
		if c.since < last {
			slices.SortStableFunc(r.claims, func(a, b *claim) int { return cmp.Compare(a.since, b.since) })
			return
		}
		last = c.since
	}
}

// undivided sets the targets under None and Static. Servers get what their holders want: they
// bound each of them.
func (d *divider) undivided(r *resource) {
	for _, c := range r.claims {
		if c.learning {
			continue
		}
		for _, b := range c.all() {
			amount := b.Wants
			if r.terms.Algorithm == Static && !c.server() {
				amount = min(amount, r.each)
			}
			c.aim(r.band(b.Band), amount)
		}
	}
}

// keep makes what the claim counts its target.
func (c *claim) keep() int64 {
	c.target = c.ledger.count()
	if c.server() {
		copy(c.aims, c.parts)
		for _, part := range c.parts {
			c.aims[0] -= part
		}
		c.aims[0] += c.target
	}
	return c.target
}

// aim adds to the target of a claim.
func (c *claim) aim(band int, amount int64) {
	c.target += amount
	if c.server() {
		c.aims[band] += amount
	}
}

// floors divides the capacity among the bands: first up to the floors, then in order.
func (r *resource) floors(capacity int64, wants, aims *[MaxBands]int64) {
	rest := capacity
	for b := range r.bands() {
		aims[b] = min(wants[b], r.floor(b, capacity), rest)
		rest -= aims[b]
	}
	for b := range r.bands() {
		more := min(wants[b]-aims[b], rest)
		aims[b] += more
		rest -= more
	}
}

// floor returns the floor of a band. In a child, it is the part of its lease for that band.
func (r *resource) floor(band int, capacity int64) int64 {
	switch {
	case r.up != nil && band < len(r.parts):
		return r.parts[band]
	case r.up == nil && band < len(r.terms.Floors):
		return capacity * int64(r.terms.Floors[band]) / 100 // At most 2^47.
	}
	return 0
}

// divideBand divides an amount among the buckets of one band.
func (d *divider) divideBand(r *resource, band int, amount, wants int64, now headgate.Instant, turn time.Duration) {
	d.clients, d.owners = d.clients[:0], d.owners[:0]
	for _, c := range r.claims {
		for _, b := range c.all() {
			if b.Wants > 0 && !c.learning && r.band(b.Band) == band {
				d.client(c, b)
			}
		}
	}
	var sizes []int64
	if r.terms.Algorithm == Proportional && amount < wants {
		sizes = d.scratch.Divide(share.Terms{Division: share.Loan, Capacity: amount}, d.clients)
	} else {
		sizes = d.scratch.Fill(amount, d.clients)
	}
	for i, c := range d.owners {
		c.aim(band, sizes[i])
	}
	r.levels[band] = d.level(sizes)
	d.turns(sizes, now, turn)
}

// level returns what the unmet clients have for a weight of 1.
func (d *divider) level(sizes []int64) float64 {
	level := float64(metLevel)
	for i := range d.clients {
		if c := &d.clients[i]; sizes[i] < c.Demand {
			level = min(level, float64(sizes[i])/float64(c.Weight))
		}
	}
	return level
}

// client adds a bucket to the clients. share bounds weights, so a heavier bucket has several
// equal clients.
func (d *divider) client(c *claim, b Bucket) {
	pieces := (b.Weight + share.MaxWeight - 1) / share.MaxWeight
	for i := range pieces {
		weight, wants := b.Weight/pieces, b.Wants/pieces
		if i < b.Weight%pieces {
			weight++
		}
		if i < b.Wants%pieces {
			wants++
		}
		d.clients = append(d.clients, share.Client{Weight: weight, Demand: wants})
		d.owners = append(d.owners, c)
	}
}

// turns records who has the units of equal remainders. Among equal clients, share gives them to
// the first ones in the list, which is ordered by since. So a claim goes to the end of the order
// when it had such a unit for a turn, and claims without unmet demand do not wait.
func (d *divider) turns(sizes []int64, now headgate.Instant, turn time.Duration) {
	d.leastSizes(sizes)
	weight, least, unmet := int64(0), int64(0), false // of the client before: most have the same weight
	for i, c := range d.owners {
		if w := d.clients[i].Weight; w != weight {
			weight = w
			least, unmet = d.least[w]
		}
		switch {
		case c.server():
		case !unmet || sizes[i] != least+1:
			if c.picked = 0; sizes[i] >= d.clients[i].Demand {
				c.since = now
			}
		case c.picked == 0:
			c.picked = now
		case now.Sub(c.picked) >= turn:
			c.since, c.picked = now, now
		}
	}
}

// leastSizes sets least.
func (d *divider) leastSizes(sizes []int64) {
	clear(d.least)
	weight, least := int64(0), int64(math.MaxInt64)
	for i, c := range d.owners {
		client := &d.clients[i]
		if c.server() || sizes[i] >= client.Demand {
			continue
		}
		if client.Weight != weight {
			weight, least = client.Weight, math.MaxInt64
			if known, ok := d.least[weight]; ok {
				least = known
			}
		}
		if sizes[i] < least {
			least = sizes[i]
			d.least[weight] = least
		}
	}
}
