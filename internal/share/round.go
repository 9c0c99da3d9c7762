package share

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// Scratch holds buffers, so that repeated divisions do not allocate. The slices that its
// methods return belong to the Scratch. The zero value is ready. It is not safe for
// concurrent use.
type Scratch struct {
	sizes      []int64
	remainders []remainder
	claims     []claim
	unit       divisor // one unit, in numerators
	left       int64   // units that are not yet handed out
}

// remainder is the fraction of a client's exact size, as a numerator of 192 bits, highest
// word first. It is scaled as the divisor is.
type remainder struct {
	w2, w1, w0 uint64
	at         int // index in the list of clients
}

// empty resizes the buffers for n sizes.
func (s *Scratch) empty(n int) {
	s.sizes = slices.Grow(s.sizes[:0], n)[:n]
	s.remainders = slices.Grow(s.remainders[:0], n)
}

// begin starts to hand out units. The exact sizes are fractions with this denominator,
// which is above 0 and below 2^192.
func (s *Scratch) begin(units int64, denominator quad) {
	s.unit, s.left = divisorOf(denominator), units
}

// give hands a client the whole units of its exact size. The sum of all numerators must be
// the units times the denominator.
func (s *Scratch) give(at int, numerator quad) {
	whole, left := s.unit.divide(numerator)
	s.sizes[at] = int64(whole)
	s.left -= int64(whole)
	if left != (quad{}) {
		s.remainders = append(s.remainders, remainder{left.w2, left.w1, left.w0, at})
	}
}

// finish hands out the remaining units, one for each of the largest remainders. Each
// remainder is below a unit, and their sum is the remaining units, so there are enough
// remainders.
func (s *Scratch) finish(clients []Client) {
	if s.left == 0 {
		return
	}
	for _, r := range largest(s.remainders, int(s.left), clients) {
		s.sizes[r.at]++
	}
}

// largest returns the n largest remainders, in any order. It partitions the range that
// contains the n-th remainder, usually into halves. It sorts the range when the range is
// small, or when malicious demands keep the partitions uneven.
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

// partition moves the remainders before or behind the median of three, and returns the
// index of that median.
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

// compare puts the larger remainder first. Among equal remainders, the name that sorts
// first comes first.
func compare(a, b *remainder, clients []Client) int {
	if order := cmp.Or(cmp.Compare(b.w2, a.w2), cmp.Compare(b.w1, a.w1), cmp.Compare(b.w0, a.w0)); order != 0 {
		return order
	}
	if order := strings.Compare(clients[a.at].Name, clients[b.at].Name); order != 0 {
		return order
	}
	return cmp.Compare(a.at, b.at)
}
