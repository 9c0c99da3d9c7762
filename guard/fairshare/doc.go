// Package fairshare divides the capacity of a service among its clients. Each client has
// a default share of every cycle. Unused shares are lent to busy clients and returned as
// soon as their owners need them. Only a client whose demand exceeds its share is refused.
//
//	l, err := fairshare.New(now, fairshare.Config{Capacity: 2000, Cycle: time.Second, ...})
//	d, receipt := l.Take(now, fairshare.Request{Client: "home-loan"})
//
// # A cycle
//
// A cycle [kW, (k+1)W) is aligned to the Unix epoch. At its start each client gets a
// size. Package share computes the sizes from the demands of the previous cycle, which
// include refused attempts. The sizes add up to the capacity. Each unit of a cycle is in
// one of these places, or moves between two of them:
//
//	a client's cell     the units that only this client can take
//	the reserve         for owners that exceed their entitlement for the rest of the cycle
//	spare               for borrowers that are not ahead of their sizes
//	open                for all clients
//	used
//
// Atomic operations move units and never create units. So no cycle admits more than the
// capacity under any concurrency, except the credit for newcomers. A decision takes units from the client's own cell with
// one lookup and one compare-and-swap. If the cell has too few units, the decision tries
// the three pools. One new pointer starts a new cycle. The cells of the previous cycle are
// closed, and a caller that finds a closed cell retries in the new cycle.
//
// # Loans and their return
//
// Under NextCycle a cell starts with the client's size and gets nothing later. Loans
// return at the next cycle. The size of a lender is its previous demand, so a client below its
// default share is refused whenever its demand grows. Of a Poisson stream with a mean of 400
// units per cycle, about 3 % are refused.
//
// Under AtOnce a cell starts with the whole default share d. When the part r of the cycle
// remains, the client's entitlement is
//
//	owed(r) = min(floor(r d), d - used)
//
// At least every 10 ms, and at least a hundred times per cycle, a release takes the units above the entitlement
// out of all cells. These units fill the reserve first. They then fill spare with the units
// that borrowers can use until the next release. The rest is divided among clients that
// were refused since the last release. Units that these clients do not need become open.
// Two bounds follow while no client joins and no setting changes:
//
//  1. An owner within its default share is refused only after a burst: since some moment
//     with the part r remaining, it requested more than floor(r d). At that moment its cell
//     held the entitlement, and no other client can take units from the cell. The
//     reserve, which all owners share, serves demand beyond the entitlement.
//  2. While any client has unmet demand, only three amounts stay idle: the reserve, the
//     entitlements, and the expected demand of borrowers within their sizes until the next
//     release. The last release is the time quick before the end of the cycle. Then the idle
//     units are about quick/W of the capacity, plus the reserve of that moment.
//
// The reserve is for bursts. Let an owner's demand in the rest of the cycle be X, with mean m
// and variance v. The owner lacks max(0, X - cell) units. The demand of all owners beyond
// their cells is about
//
//	sum of max(0, m - cell) + 4 sqrt(sum of v)
//
// where owners whose cell covers four standard deviations are left out. The missing
// units of independent owners are about
//
//	sum of E max(0, X - cell) + 5 sqrt(sum of Var max(0, X - cell))
//
// The reserve holds the smaller of the two, and at most the unused default shares of these
// owners or a tenth of the capacity. m and v are weighted averages of recent cycles,
// or follow the rate of the current cycle if that rate is higher. The variance is at least that of a
// Poisson stream of lumps as large as the requests' costs. All values shrink with the rest
// of the cycle, so the reserve is empty at its end. A shared reserve is small: for n
// equal owners it grows with the square root of n. docs/decisions/0010 compares other
// parameters and designs by their refusals and idle units.
//
// A request that costs more than its client's default share is not guaranteed to pass. Under
// AtOnce it passes when enough units are unused. Under NextCycle it can also pass at the start
// of a cycle in which the client's size is large enough.
//
// # Clients
//
// A name becomes a client with its first request, and is forgotten after ForgetAfter
// cycles without a request. In its first cycle a client gets its default share, or what
// the cycle has left if that is less. Under AtOnce that excludes the entitlements of others.
// This applies to the first newcomers of a cycle: one for each four established clients, at
// least one and at most 64. In the very first cycle it applies to the first 64 clients. Further
// newcomers take from spare and open while these have units.
//
// A newcomer is a client with a trusted name (TrustNames) in its first cycle, or a client in Weights in the
// first cycle in which it sends requests. A newcomer that finds no units uses a credit beyond the capacity:
//
//   - Its first request passes at once. Its use may then grow evenly, to its whole default share
//     after a tenth of a cycle, so that newcomers that arrive together are all admitted. The number of newcomers
//     with their own default share is not bounded by a quarter of the established clients.
//   - In any interval of a cycle's length the credit is at most one default share: the share of the first of
//     these newcomers. Uses are recorded in a hundred slots per cycle, and expire up to one slot late.
//   - In the next cycle as many units of the newcomer's share are held. It gets them when the credit has
//     expired, or when all that was used in the last cycle's length, with all other units of the cycle, is at
//     most the capacity and one default share. The use of the last cycle is recorded at each release.
//   - Under AtOnce a client in Weights has its entitlement. The credit admits only its first request, when
//     the entitlement is less than one unit.
//
// So the credit does not depend on the requests of others, and m newcomers that arrive within a
// cycle's length share one default share until the next cycle. With n clients that used the capacity C,
// their default shares would need mC/(n+m) units, and the bound leaves C/(n+1). Invented names have no
// credit. Only a refused request of a newcomer takes the lock. docs/decisions/0035 compares other rules.
//
// A client is established after requests in three cycles, or if it is in Weights. The number
// of default shares for all newcomers together is bounded. More newcomers share these
// default shares, and can borrow what no other client requests. So no stream of
// invented names leaves established clients less than four fifths of their default shares.
// With n established clients, fewer than four, they keep n/(n+1). Others takes one more
// default share.
//
// This rule bounds names that come and go, but a name that stays is established after three
// cycles. Therefore a client is lasting when it has been established for an hour (Lasting)
// without being forgotten, counted in cycles. While lasting clients exist, they and the
// clients in Weights together have four fifths of the capacity as default shares. With n such
// clients, fewer than four, they have n/(n+1). All other names, including Others, have one
// default share for each four of these clients, and at least one. If these names need more
// default shares, they share this number, and can borrow what no other client requests.
// TrustNames turns this rule off. The rule does not guarantee anything
//
//   - in the first hour after New, when no client is lasting;
//   - against names that were established an hour before they flood, because these are
//     lasting clients;
//   - to a client that was forgotten (ForgetAfter) and returns: it is a late client again.
//     While invented names hold all MaxClients places, the returning client is in Others.
//
// After NewClientsPerCycle new names in a cycle, further names share one bucket, Others.
// Others has one default share, and what no other client requests. A name that
// appears in Others in three cycles becomes a client. At most NewClientsPerCycle names
// leave Others in one cycle. A table of fixed size remembers the hashes of these names.
//
// # Edge cases
//
// Capacity 0 admits nothing, and a cost above the capacity never passes. A single client
// has the whole capacity. With more clients than units, the clients whose names sort first
// have one unit each, and the others can use what these leave. If the clock steps back by
// less than a cycle or a second, the running cycle continues to its end. After a larger step
// back, the usage moves to the cycle of the new time. Reload keeps the usage and takes effect
// at once.
package fairshare
