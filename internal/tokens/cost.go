package tokens

import (
	"math/bits"
	"strings"

	"github.com/headgate/headgate"
)

// Cost is the cost of counts in units, rounded up: the sum of the kinds by their weights, which are those of the model if s has prices.
// Without weights and prices, each token costs 1, and the cost is at least the stated total. A cost is at most headgate.MaxUnits.
//
// Counts of JSON and Headers have their cost in Total already.
func (s *Settle) Cost(c *Counts, model string) int64 {
	if s.API == NoAPI {
		return min(max(c.Total, 0), headgate.MaxUnits)
	}
	w, least := s.weights(model)
	var sum total
	sum.add(c.Input, w.Input)
	sum.add(c.Cached, w.Cached)
	sum.add(c.Written, w.Written)
	sum.add(c.Output, w.Output)
	cost := sum.units(One)
	if least {
		cost = max(cost, min(c.Total, headgate.MaxUnits))
	}
	return cost
}

// weights gives the weights of a model, and whether the stated total is the least cost.
func (s *Settle) weights(model string) (w Weights, least bool) {
	if len(s.Prices) > 0 {
		return price(s.Prices, model), false
	}
	if s.Weights == (Weights{}) {
		return Weights{One, One, One, One}, true
	}
	return s.Weights, false
}

// total is a sum of numbers times weights without overflow.
type total struct{ high, low uint64 }

// add adds n times w. Negative numbers count as 0.
func (s *total) add(n int64, w Weight) {
	if n <= 0 || w <= 0 {
		return
	}
	high, low := bits.Mul64(uint64(n), uint64(w))
	var carry uint64
	s.low, carry = bits.Add64(s.low, low, 0)
	s.high, _ = bits.Add64(s.high, high, carry)
}

// units is the sum in units, of which each is so many parts: rounded up, at most headgate.MaxUnits.
func (s *total) units(parts Weight) int64 {
	if s.high >= uint64(parts) {
		return headgate.MaxUnits
	}
	units, rest := bits.Div64(s.high, s.low, uint64(parts))
	if units >= headgate.MaxUnits {
		return headgate.MaxUnits
	}
	if rest > 0 {
		units++
	}
	return int64(units)
}

// price gives the weights of the price that matches a model: the name itself, else the longest pattern. Of patterns of one length, the
// first has precedence.
func price(prices []Price, model string) Weights {
	best := -1
	for i := range prices {
		pattern := prices[i].Model
		if pattern == model {
			return prices[i].Weights
		}
		if matches(pattern, model) && (best < 0 || len(pattern) > len(prices[best].Model)) {
			best = i
		}
	}
	if best < 0 {
		return Weights{}
	}
	return prices[best].Weights
}

// matches reports whether a glob matches a name: * stands for any characters.
func matches(glob, name string) bool {
	first, rest, star := strings.Cut(glob, "*")
	if !star {
		return glob == name
	}
	if !strings.HasPrefix(name, first) {
		return false
	}
	name = name[len(first):]
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], more
	}
}
