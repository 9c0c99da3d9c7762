// Package share divides a capacity among clients: who gets what, without a clock, a
// lock or a memory of what was before.
//
//	sizes := terms.Divide(clients)                  // what each may use: the capacity, to the unit
//	fair := share.Default(capacity, clients)        // by weight alone
//	grants := scratch.Proportional(amount, wants)   // some units among those who want more
//	grants = scratch.Fill(amount, wants)            // the same, small wants first
//
// # Words
//
// Of a capacity C, client i with weight w(i) has the default share d(i) = C w(i) / W,
// W being the sum of the weights. Its claim is D(i) = max(demand, reservation x d(i)).
// Its gap is d(i) - D(i): who has one above 0 is a lender, the others are borrowers.
// Surplus S is the sum of the lenders' gaps, deficit Δ that of what the borrowers
// claim beyond their default shares. Since the d(i) add up to C, S - Δ is C less the
// sum of the claims: S >= Δ says that there is enough for all.
//
// # Loan
//
//	borrower  d + min(|gap|, |gap| / Δ x S)
//	lender    D + gap / S x max(0, S - Δ)
//
// with 0/0 = 0. L = min(S, Δ) is what is lent. Written another way, a lender has
// d - gap/S x L and a borrower d + |gap|/Δ x L: the lenders give L together, the
// borrowers get L together, and the sum stays that of the default shares, C.
//
// The formula is the one of an article on a limiter in Scala, with magnitudes. There
// the deficit is a sum of negative gaps, and what remains is the surplus minus it,
// which adds the two: its example then hands out 50 of 40 units. With a positive
// deficit the printed ratio max(0, gap / deficit) is 0 for every borrower, and nobody
// gets a loan. No choice of sign makes all of its formulas right.
//
// # MaxMin
//
// With enough for all, MaxMin is Loan: each claim is met, and what is left goes to the
// lenders by gap, so that nothing stays idle. Otherwise the size is min(D, λ w), with
// the one level λ at which the sizes add up to C. It is found by meeting the claims
// below the level rest / (weight of the others), which raises it, until none is left
// below.
//
// # Whole units
//
// A size is the exact one rounded down, and the units that this leaves go one each to
// the largest remainders, of equal ones to the name that sorts first (largest
// remainder, Hamilton's method). The remainders add up to the units that are left and
// each is below 1, so they suffice, and a size that is whole already stays. Every size
// is less than one unit off the exact one, and the sum is C. Clients with one weight
// and one demand differ by at most one unit, and which of them has it is decided by
// name. The order of the list decides nothing, but among equal names.
//
// # What holds
//
// Each of these is a test over random inputs. "About" is less than one unit.
//
//   - Nobody has less than about the reservation of its default share, and nobody less
//     than about min(demand, d), in both divisions. A lender has D or more by the
//     formula, a borrower d or more; under MaxMin, λ begins at C / W and only rises, so
//     min(D, λ w) is at least min(D, d).
//   - Asking for more than one needs pays under Loan: loans go by what is claimed beyond
//     the default share, and who claims more has more of them.
//   - It never pays under MaxMin: no claim above the true demand raises
//     min(size, true demand). A client whose claim is met has its demand already. The
//     others have λ w, or about that, where λ depends on the claims that are met and on
//     the others' weights: a greater claim changes neither, nor any remainder.
//   - When there is enough for all, every demand is met and both divisions are equal.
//
// # The edges
//
//   - Capacity 0: every size is 0.
//   - One client has the whole capacity, whatever it asks for.
//   - More clients than capacity: default shares are below a unit. Among equals the
//     names that sort first have one unit and the others none, in every cycle anew. A
//     longer cycle gives all of them something: it has more units.
//   - A capacity that cannot be divided: sizes of equals differ by one, as above.
//   - Reservation 100%: every claim is at least the default share, so nobody lends and
//     all sizes are the default shares.
//   - No demand at all: the gaps are in proportion to the weights, and so are the sizes.
//
// # How exact
//
// Exactly: no size differs from what fractions of any length give. All sizes of a
// division are numerators over one denominator, in whole numbers of fixed length.
// Counted in parts, 100 W to the unit, default shares and claims are whole. Up to
// MaxClients = 2^19 clients of weights below 2^20 there are less than 2^46 parts to the
// unit; with demands to 2^62, deficits are below 2^127 and surpluses, at most C, below
// 2^86. The largest denominator is 100 W Δ, below 2^173, and numerators are at most C
// times that, below 2^213: there are 192 and 256 bits for them.
//
// Time grows with the clients, and hardly with their numbers: remainders are selected,
// not sorted.
package share
