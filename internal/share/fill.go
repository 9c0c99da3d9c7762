package share

// claim is the claim of one client, in parts of a unit.
type claim struct {
	at     int // index in the list of clients
	weight uint64
	amount double
}

// claim adds the claim of a client. A claim above all is replaced by all plus one part,
// which gives the same sizes and keeps products small.
func (s *Scratch) claim(at int, weight uint64, amount, all double) {
	if all.less(amount) {
		amount = all.plus(double{lo: 1})
	}
	s.claims = append(s.claims, claim{at, weight, amount})
}

// fill divides units among the claims up to one level: each claim gets the smaller of its
// amount and weight x level. Amounts are in parts, and scale parts are one unit. The sum
// of the claims must exceed units.
func (s *Scratch) fill(units int64, scale uint64, clients []Client) {
	rest, open := product(uint64(units), scale), uint64(0)
	for i := range s.claims {
		open += s.claims[i].weight
	}
	unmet := s.claims
	for before := len(unmet) + 1; len(unmet) < before; {
		before = len(unmet)
		unmet, rest, open = meetBelow(unmet, rest, open)
	}
	s.begin(units, product(scale, open).quad())
	for i := range s.claims {
		c := &s.claims[i]
		if i < len(unmet) {
			s.give(c.at, rest.by(c.weight).quad())
		} else {
			s.give(c.at, c.amount.by(open).quad())
		}
	}
	s.finish(clients)
}

// meetBelow meets the claims up to the level rest / open, and moves them behind the other
// claims. It returns the unmet claims, the rest for them, and their weight.
//
// At least one claim stays unmet: the sum of the claims exceeds rest, and both decrease by
// the same amount. The level never falls, because a met claim takes at most the level for
// its weight.
//
// The number of calls is bounded. A client that is met now was above the previous level. So
// the level rises by less than its last rise x the met weight / the unmet weight. At most
// log1.5(sum of weights) rises exceed half of the previous rise. After about 240 rises, a
// further rise would be below the smallest difference of two levels, for any 10,000
// clients. Random claims need fewer than ten.
func meetBelow(claims []claim, rest double, open uint64) (unmet []claim, left double, weight uint64) {
	left, weight = rest, open
	n := len(claims)
	for i := 0; i < n; {
		c := &claims[i]
		if rest.by(c.weight).less(c.amount.by(open)) {
			i++
			continue
		}
		left, weight = left.minus(c.amount), weight-c.weight
		n--
		claims[i], claims[n] = claims[n], claims[i]
	}
	return claims[:n], left, weight
}
