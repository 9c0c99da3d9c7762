package state

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/share"
)

// adopts reports whether a claim says what its holder still holds from an earlier server. Reports may overtake each other, and
// a holder accepts no lease of this server before it has said its newest version: a later report may say another amount.
func (s *Server) adopts(c *claim, m *Claim) bool {
	return c.resource.forgotten != 0 && m.Left > 0 && m.Version.Term < s.config.Term && c.ledger.acked.Less(m.Version)
}

// first takes what a holder still holds from an earlier server. No server can check what a holder says. While the server
// listens, it notes the amounts, and settle finds out whether some holder says too much. Afterwards, a holder gets at most its
// part of the capacity, by weight, because the others may not have been heard. Servers are trusted.
func (s *Server) first(now headgate.Instant, c *claim, rights Caller, m *Claim) {
	r := c.resource
	if s.listening(r, now) {
		r.noted += m.Holds - c.noted
		c.noted = m.Holds
		r.change(c, func(l *ledger) { l.adopt(m.Version, 0) })
		s.aim(c, 0)
		return
	}
	holds := m.Holds
	if weight := max(rights.Weight, 1); !rights.Server {
		holds = min(holds, max(r.capacity*weight/(r.holders-c.holders+weight), c.moved))
	}
	s.adopt(c, m.Version, holds)
}

// settle moves what holders have said from the unknown holder to their claims, when the server stops to listen. If they say more
// than the unknown holder has, some of them say too much. The servers are first, and the others share what is left as MaxMin
// does. So a holder that says too much takes nothing from those that have less than it gets.
func (s *Server) settle(r *resource) {
	if r.noted == 0 {
		return
	}
	d := &s.divider
	d.clients, d.owners = d.clients[:0], d.owners[:0]
	for _, c := range r.claims {
		switch {
		case c.noted == 0:
		case c.server():
			s.adopt(c, c.ledger.acked, c.noted)
		default:
			d.clients = append(d.clients, share.Client{Weight: c.own[0].Weight, Demand: c.noted})
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
