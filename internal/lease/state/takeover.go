package state

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
)

// longer is how many times Config.Learn a server listens whose parent has restarted too. Holders connect again within 2 s.
const longer = 3

// adopts reports whether a claim says what its holder still holds from an earlier server. Reports may overtake each other, and
// a holder accepts no lease of this server before it has said its newest version: a later report may say another amount.
func (s *Server) adopts(c *claim, m *Claim) bool {
	if c.resource.forgotten == 0 {
		return false
	}
	return m.Left > 0 && m.Version.Term < s.config.Term && c.ledger.acked.Less(m.Version) || c.sums(m)
}

// sums reports whether a claim says what the holders of a server below hold, and more than before. That server has restarted too, and
// has lost what it had. While it learns, the sum of its holders counts.
func (c *claim) sums(m *Claim) bool {
	first := m.Version == (Version{}) && c.ledger.acked == (Version{})
	return (first || c.summed) && (m.Learning || c.learning) && m.Holds > max(c.moved, c.noted) && c.ledger.count() <= c.moved
}

// first takes what a holder still holds from an earlier server. No server can check what a holder says. While the server
// listens, it notes the amounts, and settle finds out whether some holder says too much. Afterwards, a holder gets at most its
// part of the capacity, by weight, because the others may not have been heard. Servers are trusted.
func (s *Server) first(now headgate.Instant, c *claim, rights Caller, m *Claim) {
	r, version, weight := c.resource, m.Version, max(rights.Weight, 1)
	if c.summed = c.sums(m); c.summed {
		version, weight = c.ledger.acked, min(max(m.Holders, 1), share.MaxWeight)
	}
	if s.listening(r, now) {
		unbacked := int64(0)
		if m.Unbacked {
			unbacked = m.Holds
		}
		r.noted, r.apart = r.noted+m.Holds-c.noted, r.apart+unbacked-c.apart
		c.noted, c.apart = m.Holds, unbacked
		r.change(c, func(l *ledger) { l.adopt(version, 0) })
		s.aim(c, 0)
		return
	}
	holds := m.Holds
	if c.summed || !rights.Server {
		holds = min(holds, max(r.capacity*weight/(r.holders-c.holders+weight), c.moved))
	}
	s.adopt(c, version, holds)
}

// learned takes from an answer of the parent what a restarted server had. A parent that has restarted too knows what the holders have
// said so far, and counts more with each report. Then the server listens longer: until the last holder has connected again.
func (s *Server) learned(r *resource, now headgate.Instant) {
	newest := r.up.held.Lease()
	r.unknown = max(newest.Counted-r.sum, 0)
	if newest.Unknown > 0 && newest.Counted <= r.noted {
		r.summed = true
		r.quiet = max(r.quiet, s.started.Add(s.config.Learn*longer))
		s.queue.schedule(r, now)
	}
}

// together ends the difference between what is out and what the parent counts: from now on, the server gives no unbacked lease.
func (r *resource) together() {
	if r.apart != 0 {
		for _, c := range r.claims {
			c.apart = 0
		}
		r.apart = 0
	}
}

// settle moves what holders have said from the unknown holder to their claims, when the server stops to listen. If they say more
// than the unknown holder has, some of them say too much. The servers are first, and the others share what is left as MaxMin
// does. So a holder that says too much takes nothing from those that have less than it gets.
func (s *Server) settle(r *resource) {
	if r.noted == 0 {
		return
	}
	if r.summed { // The parent may count all of it later.
		r.unknown = max(r.unknown, r.noted)
	}
	d := &s.divider
	d.clients, d.owners = d.clients[:0], d.owners[:0]
	for _, c := range r.claims {
		switch {
		case c.noted == 0:
		case c.server() && !c.summed:
			s.adopt(c, c.ledger.acked, c.noted)
		default:
			weight := c.own[0].Weight
			if c.summed {
				weight = min(c.holders, share.MaxWeight)
			}
			d.clients = append(d.clients, share.Client{Weight: weight, Demand: c.noted})
			d.owners = append(d.owners, c)
		}
	}
	for i, amount := range d.scratch.Fill(r.unknown, d.clients) {
		s.adopt(d.owners[i], d.owners[i].ledger.acked, amount)
	}
}

// adopt moves an amount from the unknown holder to a claim. An earlier report of the holder may have said another amount.
func (s *Server) adopt(c *claim, v Version, holds int64) {
	r := c.resource
	moved := min(holds, r.unknown+c.moved)
	r.unknown += c.moved - moved
	r.noted -= c.noted
	c.moved, c.noted = moved, 0
	r.change(c, func(l *ledger) { l.adopt(v, moved) })
	s.aim(c, moved)
}

// aim gives a claim an amount until the next division. It knows no bands of a server before that.
func (s *Server) aim(c *claim, amount int64) {
	c.target = amount
	if c.aims != nil {
		clear(c.aims)
		c.aims[0] = amount
	}
	s.set(c, amount)
}
