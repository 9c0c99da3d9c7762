// Package share divides a capacity among clients. Its functions use no clock, no lock
// and no state of earlier divisions.
//
//	sizes := terms.Divide(clients)                  // units for each client: the sum is the capacity
//	fair := share.Default(capacity, clients)        // by weight alone
//	grants := scratch.Proportional(amount, wants)   // divides an amount in proportion to demands
//	grants = scratch.Fill(amount, wants)            // the same, small demands first
//
// # Words
//
// Let C be the capacity, w(i) the weight of client i, and W the sum of the weights. The
// default share of client i is d(i) = C w(i) / W. Its claim is
// D(i) = max(demand, reservation x d(i)). Its gap is d(i) - D(i). A client with a gap above
// 0 is a lender. The other clients are borrowers. The surplus S is the sum of the lenders'
// gaps. The deficit Δ is the sum of the borrowers' claims beyond their default shares.
// Since the d(i) add up to C, S - Δ is C minus the sum of the claims. S >= Δ means
// that the capacity meets all claims.
//
// # Loan
//
//	borrower  d + min(|gap|, |gap| / Δ x S)
//	lender    D + gap / S x max(0, S - Δ)
//
// with 0/0 = 0. L = min(S, Δ) is the lent capacity. In other words, a lender has
// d - gap/S x L and a borrower d + |gap|/Δ x L. The lenders give L together, the
// borrowers get L together, and the sum remains C, the sum of the default shares.
//
// The formula comes from an article on a limiter in Scala, with magnitudes in place of signed
// numbers. In the article the deficit is a sum of negative gaps, and the remaining capacity is
// the surplus minus the deficit, which adds the two. Its example therefore hands out 50
// of 40 units. With a positive deficit, the printed ratio max(0, gap / deficit) is 0 for every
// borrower, so no client gets a loan. No choice of signs makes all of its formulas correct.
//
// # MaxMin
//
// If the capacity meets all claims, MaxMin is equal to Loan: the lenders get the rest in
// proportion to their gaps, so no unit stays idle. Otherwise the size is min(D, λ w), with
// the one level λ at which the sizes add up to C. The algorithm meets all claims below the
// level rest / (weight of the unmet claims). That raises the level. The algorithm
// repeats this step until no unmet claim is below the level.
//
// # Whole units
//
// Sizes are rounded by the largest remainder (Hamilton's method). Each exact size is
// rounded down, and each of the remaining units goes to one of the largest remainders. Among
// equal remainders the name that sorts first wins. The remainders add up to the
// remaining units and each is below 1, so there are enough of them. A size that is
// already whole does not change. Every size differs from the exact size by less than one unit,
// and the sum is C. Clients with equal weights and demands differ by at most one unit, and
// their names decide which of them gets it. The order of the list matters only among
// equal names.
//
// # Properties
//
// A test with random inputs checks each property. "About" means within one unit.
//
//   - In both divisions, every client has at least about the reservation of its default
//     share, and at least about min(demand, d). By the formula a lender has D or more, and a
//     borrower d or more. Under MaxMin, λ starts at C / W and only rises, so min(D, λ w)
//     is at least min(D, d).
//   - Under Loan, an inflated demand pays: loans are proportional to the claim beyond the
//     default share.
//   - Under MaxMin, an inflated demand never pays: no claim above the true demand raises
//     min(size, true demand). A client whose claim is met already has its demand. An unmet
//     client has about λ w, and λ depends only on the met claims and the weights. A larger
//     claim changes neither of these, and no remainder.
//   - If the capacity meets all claims, every demand is met and both divisions are equal.
//
// # Edge cases
//
//   - Capacity 0: every size is 0.
//   - One client: it has the whole capacity, whatever its demand.
//   - More clients than capacity: default shares are below a unit. Among equal clients, the
//     names that sort first have one unit and the others none, in every cycle. With a
//     longer cycle, the capacity has more units, enough for all clients.
//   - A capacity that is not divisible: equal clients differ by at most one unit.
//   - Reservation 100%: every claim is at least the default share. So no client lends, and
//     all sizes are the default shares.
//   - No demand: the gaps are proportional to the weights, and the sizes are too.
//
// # Precision
//
// All sizes are exact before rounding. The sizes of a division are numerators over one
// denominator, in whole numbers of fixed length. With 100 W parts to the unit, default
// shares and claims are whole numbers. Up to MaxClients = 2^19 clients of weights below 2^20
// need less than 2^46 parts to the unit. With demands up to 2^62, deficits are below
// 2^127. Surpluses are at most C, and so below 2^86. The largest denominator is 100 W Δ,
// below 2^173. Numerators are at most C times the denominator, below 2^213. They are
// stored in 192 and 256 bits.
//
// The time is linear in the number of clients, and almost independent of their demands:
// remainders are selected, not sorted.
package share
