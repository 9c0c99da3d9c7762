package share

// claim is what one client claims, in parts of a unit.
type claim struct {
	at     int // its place in the list
	weight uint64
	amount double
}

// claim notes what a client claims of all that there is. What is beyond that cannot
// be met, however much it is: one part more stands for it, and keeps products small.
func (s *Scratch) claim(at int, weight uint64, amount, all double) {
	if all.less(amount) {
		amount = all.plus(double{lo: 1})
	}
	s.claims = append(s.claims, claim{at, weight, amount})
}

// fill hands out units among the claims, which are in parts (scale of them are a
// unit) and together above it, up to one level: the lesser of its claim and weight x
// level for each.
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

// meetBelow meets the claims up to the level rest / open, puts them behind the
// others, and gives the others with what is left for them and their weight.
//
// They never run out: the claims are together above rest, and stay so as both lose
// the same. The level never sinks, for who leaves takes at most the level for its
// weight. A client that leaves now was above the level before, so the level rises by
// less than it last did x the weight that leaves / the weight that stays. Hence at
// most log1.5(sum of weights) rises are above half of the last one, and after some
// 240 a rise would be below the least difference of two levels, whatever 10,000
// clients claim; random claims take less than ten.
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
