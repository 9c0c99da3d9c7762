package share

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// Scratch is room for divisions one after the other without allocating: the slices
// that its methods give are its own. The zero value is ready. It is not safe for
// concurrent use.
type Scratch struct {
	sizes      []int64
	remainders []remainder
	claims     []claim
	unit       divisor // what one unit is in numerators
	left       int64   // units that are not handed out yet
}

// remainder is what whole units leave of a client's exact size: a number of 192 bits that
// the divisor gave, the highest first.
type remainder struct {
	w2, w1, w0 uint64
	at         int // the client's place in the list
}

// empty makes room for n sizes.
func (s *Scratch) empty(n int) {
	s.sizes = slices.Grow(s.sizes[:0], n)[:n]
	s.remainders = slices.Grow(s.remainders[:0], n)
}

// begin starts to hand out units by sizes that are fractions with one denominator,
// below 2^192. It is not 0.
func (s *Scratch) begin(units int64, denominator quad) {
	s.unit, s.left = divisorOf(denominator), units
}

// give hands a client the whole units of its size. All numerators together are
// exactly the units times the denominator.
func (s *Scratch) give(at int, numerator quad) {
	whole, left := s.unit.divide(numerator)
	s.sizes[at] = int64(whole)
	s.left -= int64(whole)
	if left != (quad{}) {
		s.remainders = append(s.remainders, remainder{left.w2, left.w1, left.w0, at})
	}
}

// finish hands out the units that are left, one each to the largest remainders.
// Each is below a unit and they add up to what is left: there are more than units.
func (s *Scratch) finish(clients []Client) {
	if s.left == 0 {
		return
	}
	for _, r := range largest(s.remainders, int(s.left), clients) {
		s.sizes[r.at]++
	}
}

// largest gives the n largest remainders, in any order. It narrows down the part that
// the n-th is in, by halves as a rule, and sorts what is left of it when it is small,
// or when demands that were made for it keep it from narrowing.
func largest(all []remainder, n int, clients []Client) []remainder {
	low, high := 0, len(all)
	for turns := 2 * bits.Len(uint(len(all))); high-low > 12 && turns > 0; turns-- {
		at := low + partition(all[low:high], clients)
		switch {
		case at == n:
			return all[:n]
		case at < n:
			low = at + 1
		default:
			high = at
		}
	}
	slices.SortFunc(all[low:high], func(a, b remainder) int { return compare(&a, &b, clients) })
	return all[:n]
}

// partition puts the remainders before the median of three of them or behind it, and
// gives its place.
func partition(all []remainder, clients []Client) int {
	first, middle, last := 0, len(all)/2, len(all)-1
	for _, p := range [...][2]int{{first, middle}, {middle, last}, {first, middle}} {
		if compare(&all[p[0]], &all[p[1]], clients) > 0 {
			all[p[0]], all[p[1]] = all[p[1]], all[p[0]]
		}
	}
	pivot := all[middle]
	all[middle], all[last] = all[last], pivot
	n := 0
	for i := range all[:last] {
		if compare(&all[i], &pivot, clients) < 0 {
			all[n], all[i] = all[i], all[n]
			n++
		}
	}
	all[n], all[last] = pivot, all[n]
	return n
}

// compare orders remainders: the larger first, of equal ones the name that sorts first.
func compare(a, b *remainder, clients []Client) int {
	if order := cmp.Or(cmp.Compare(b.w2, a.w2), cmp.Compare(b.w1, a.w1), cmp.Compare(b.w0, a.w0)); order != 0 {
		return order
	}
	if order := strings.Compare(clients[a.at].Name, clients[b.at].Name); order != 0 {
		return order
	}
	return cmp.Compare(a.at, b.at)
}
