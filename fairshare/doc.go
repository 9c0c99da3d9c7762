// Package fairshare shares the capacity of a service among its clients: each has a
// default share of every cycle, what a client leaves of its own is lent to those who
// ask for more, and comes back when its owner needs it. Only who asks for more than
// there is for it is refused.
//
//	l, err := fairshare.New(now, fairshare.Config{Capacity: 2000, Cycle: time.Second, ...})
//	d, receipt := l.Take(now, fairshare.Request{Client: "home-loan"})
//
// # A cycle
//
// A cycle [kW, (k+1)W) is aligned to the Unix epoch. At its begin each client gets a
// size from what it asked for in the cycle before (its demand, refused attempts
// included) by the division of package share: the sizes add up to the capacity. The
// capacity of one cycle is a number of units, each of which is in one of these places,
// or on its way from one to another:
//
//	a client's cell     what it may take without asking anybody
//	the reserve         for owners who ask for more than the rest of the cycle owes them
//	spare               for borrowers who are not ahead of their sizes
//	open                for everybody
//	used
//
// Units are moved by atomic operations, and never made: so no cycle admits
// more than the capacity, whatever happens at the same time. A decision takes units
// from the client's own cell by a lookup and one compare-and-swap; who finds too
// little there looks into the pots behind. A new cycle is one new pointer; the cells
// of the last one are closed, and who finds a closed cell looks again.
//
// # Lending, and how it comes back
//
// Under NextCycle a cell begins with the client's size, and that is all: what was
// lent comes back with the next cycle. A lender's size is what it asked for last, so
// that a client well within its default share is refused whenever it asks for a
// little more: of a Poisson stream of 400 a cycle about 3 %.
//
// Under AtOnce a cell begins with the whole default share d, and the client is owed
// of it, when the part r of the cycle is still to come,
//
//	owed(r) = min(floor(r d), d - used)
//
// From time to time, some hundred times a second, what is above that is taken out of
// all cells (release). It fills the reserve first, then what borrowers may have
// borrowed until the next release, as the cycle passes, and have not; the rest goes to
// those who were refused since the last release, by the division again, and what they
// do not need is open. From this follow two bounds, while nobody joins and no setting
// changes:
//
//  1. An owner within its default share is refused only if since some moment, at
//     which the part r was to come, it has asked for more than floor(r d): more than
//     the rest of the cycle owed it, in a burst. For at that moment it was owed so
//     much, in its own cell, and nobody else takes from that. What it asks for beyond
//     it has as far as the reserve goes, which owners share.
//  2. Nothing stays idle while somebody asks, but the reserve, what is owed, and what
//     borrowers within their sizes are expected to take until the next release: at the
//     last one, quick before the end, that is some quick/W of the capacity and the
//     reserve of that moment.
//
// The reserve is for bursts. An owner that asks for X in the rest of the cycle, m on
// average with the variance v, is short of max(0, X - cell). All of them together ask
// for about
//
//	sum of max(0, m - cell) + 4 sqrt(sum of v)
//
// beyond their cells, where who is covered by four deviations of its own is left out,
// and are short of about
//
//	sum of E max(0, X - cell) + 5 sqrt(sum of Var max(0, X - cell))
//
// if they do not conspire. The lesser is held, and no more than owners may ask for at
// all or a tenth of the capacity. m and v are those of the last cycles, weighed less
// and less, or what the pace of this cycle says if that is more; requests come at
// least as irregularly as a Poisson stream of lumps as large as their costs. All of it
// shrinks with the rest of the cycle, so that at its end nothing is held back for
// nobody. Pooled, it is small: for n equal owners it grows as the root of n.
// docs/decisions/0010 has what other numbers, and other designs, refuse and waste.
//
// A request that costs more than its client's default share is not owed to it in one
// piece: under AtOnce it passes when so much is left over, under NextCycle also at the
// begin of a cycle in which its client has such a size.
//
// # Who is a client
//
// Who asks for the first time becomes a client, and is forgotten after some cycles
// without a request. In the cycle in which it comes it has at once its default share,
// or what is left of the cycle if that is less: under AtOnce what the rest does not owe
// to others. This is for the first newcomers of a cycle, one for each four established
// clients, at least one and at most 64; in the very first cycle for the first 64.
// Further ones take from spare and open, as far as there is something.
//
// A client is established when it has been seen in three cycles, or is in Weights. All
// others together have no more default shares than there are for newcomers: more of
// them share these, and may borrow what nobody else asks for. So no stream of invented
// names leaves established clients less than four fifths of their default shares, or
// less than n/(n+1) where they are n, fewer than four; Others takes one more.
//
// That rule bounds names that come and go. Names that stay are established after three
// cycles. Therefore a client is lasting when it has been established for an hour (Lasting)
// without being forgotten, counted in cycles. While there are lasting clients, these and those in
// Weights have four fifths of the capacity as default shares together, or n/(n+1) where
// they are n, fewer than four. All other names, Others among them, have one default share
// for each four of the former, and at least one: more of them share these, as one party,
// and may borrow what no other client asks for. TrustNames turns this rule off. It
// guarantees nothing
//
//   - in the first hour after New, when no client is lasting;
//   - against names that were established an hour before they flood: they are clients;
//   - to a client that is forgotten (ForgetAfter): it begins anew as a late one. While
//     invented names hold all MaxClients places it is among Others.
//
// After so many new names in a cycle as the Config says the rest shares one bucket,
// Others, which has one default share and what nobody else asks for. A name that was
// seen there in three cycles becomes a client too, as many again in a cycle at most.
// Names are remembered in a table of fixed size, by their hashes.
//
// # The edges
//
// Capacity 0 admits nothing, and a cost above the capacity never passes. One client
// has all of the capacity. With more clients than units, those first in the order of
// their names have one each, and the others what these leave. When the clock goes
// back by less than a cycle, or a second, the running cycle goes on to its end; when it
// goes back further, what is used of it stays used in the cycle that then is. A Reload keeps
// what is used, and takes effect at once.
package fairshare
