package share

import (
	"cmp"
	"math/big"
	"slices"
)

// This file has a slow twin of each division: its definition in exact fractions. The
// tests compare the package with the twins.

func frac(n int64) *big.Rat         { return new(big.Rat).SetInt64(n) }
func add(a, b *big.Rat) *big.Rat    { return new(big.Rat).Add(a, b) }
func sub(a, b *big.Rat) *big.Rat    { return new(big.Rat).Sub(a, b) }
func mul(a, b *big.Rat) *big.Rat    { return new(big.Rat).Mul(a, b) }
func quo(a, b *big.Rat) *big.Rat    { return new(big.Rat).Quo(a, b) }
func larger(a, b *big.Rat) *big.Rat { return pick(a.Cmp(b) > 0, a, b) }
func lesser(a, b *big.Rat) *big.Rat { return pick(a.Cmp(b) < 0, a, b) }

func pick(first bool, a, b *big.Rat) *big.Rat {
	if first {
		return a
	}
	return b
}

func sum(numbers []*big.Rat) *big.Rat {
	s := new(big.Rat)
	for _, x := range numbers {
		s.Add(s, x)
	}
	return s
}

// twinFair returns the default shares before rounding.
func twinFair(capacity int64, clients []Client) []*big.Rat {
	var weights int64
	for _, c := range clients {
		weights += c.Weight
	}
	fair := make([]*big.Rat, len(clients))
	for i, c := range clients {
		fair[i] = quo(mul(frac(capacity), frac(c.Weight)), frac(weights))
	}
	return fair
}

// twinClaims returns the demands, or the reservations where these are larger.
func twinClaims(t Terms, clients []Client) []*big.Rat {
	claims := twinFair(t.Capacity, clients)
	for i, c := range clients {
		claims[i] = larger(frac(c.Demand), mul(claims[i], big.NewRat(int64(t.Reservation), 100)))
	}
	return claims
}

// twinLoan is the formula of the package comment for Loan, term by term.
func twinLoan(t Terms, clients []Client) []*big.Rat {
	d, D := twinFair(t.Capacity, clients), twinClaims(t, clients)
	deficit, surplus := new(big.Rat), new(big.Rat)
	for i := range clients {
		if gap := sub(d[i], D[i]); gap.Sign() < 0 {
			deficit = sub(deficit, gap)
		} else {
			surplus = add(surplus, gap)
		}
	}
	rest := larger(frac(0), sub(surplus, deficit))
	sizes := make([]*big.Rat, len(clients))
	for i := range clients {
		gap := sub(d[i], D[i])
		switch {
		case gap.Sign() > 0:
			sizes[i] = add(D[i], mul(quo(gap, surplus), rest))
		case gap.Sign() < 0:
			size := new(big.Rat).Abs(gap)
			sizes[i] = add(d[i], lesser(size, mul(quo(size, deficit), surplus)))
		default:
			sizes[i] = d[i]
		}
	}
	return sizes
}

// twinFill meets claims one by one, in the order of claim per weight, while the level
// reaches them. The unmet clients get the level.
func twinFill(amount *big.Rat, clients []Client, claims []*big.Rat) []*big.Rat {
	order := make([]int, len(clients))
	weights := new(big.Rat)
	for i, c := range clients {
		order[i] = i
		weights = add(weights, frac(c.Weight))
	}
	slices.SortFunc(order, func(a, b int) int {
		return quo(claims[a], frac(clients[a].Weight)).Cmp(quo(claims[b], frac(clients[b].Weight)))
	})
	sizes := make([]*big.Rat, len(clients))
	for _, i := range order {
		weight := frac(clients[i].Weight)
		sizes[i] = lesser(claims[i], mul(weight, quo(amount, weights)))
		amount, weights = sub(amount, sizes[i]), sub(weights, weight)
	}
	return sizes
}

// twinDivide returns the rounded sizes.
func twinDivide(t Terms, clients []Client) []int64 {
	claims := twinClaims(t, clients)
	if t.Division == Loan || sum(claims).Cmp(frac(t.Capacity)) <= 0 {
		return twinRound(twinLoan(t, clients), clients)
	}
	return twinRound(twinFill(frac(t.Capacity), clients, claims), clients)
}

// twinSplit returns Proportional, or Fill if fill is true.
func twinSplit(fill bool, amount int64, wants []Client) []int64 {
	demands := make([]*big.Rat, len(wants))
	for i, c := range wants {
		demands[i] = frac(c.Demand)
	}
	all := sum(demands)
	switch {
	case all.Cmp(frac(amount)) <= 0:
	case fill:
		demands = twinFill(frac(amount), wants, demands)
	default:
		for i := range demands {
			demands[i] = quo(mul(frac(amount), demands[i]), all)
		}
	}
	return twinRound(demands, wants)
}

// twinRound rounds the sizes by the largest remainder and keeps their sum. Equal remainders
// are ordered by name.
func twinRound(exact []*big.Rat, clients []Client) []int64 {
	sizes := make([]int64, len(exact))
	rests := make([]*big.Rat, len(exact))
	order := make([]int, len(exact))
	for i, x := range exact {
		floor := new(big.Int).Div(x.Num(), x.Denom())
		sizes[i], order[i] = floor.Int64(), i
		rests[i] = sub(x, new(big.Rat).SetInt(floor))
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(rests[b].Cmp(rests[a]), cmp.Compare(clients[a].Name, clients[b].Name))
	})
	left := sum(rests)
	if !left.IsInt() {
		panic("the sum of the exact sizes is not a whole number")
	}
	for _, i := range order[:left.Num().Int64()] {
		sizes[i]++
	}
	return sizes
}
