package state

import (
	"math"
	"slices"
)

// The ratios of wants to weight in one bucket differ by at most the square root of 2. Ratios are
// at least 1/MaxBucketWeight, and those below 1 are in the first bucket.
const ratios = 81

// curve collects buckets.
type curve struct {
	sums [MaxBands][ratios]Bucket
}

// ratio returns the index of the bucket for a claim.
func ratio(weight, wants int64) int {
	n := int(math.Floor(2 * math.Log2(float64(wants)/float64(max(weight, 1)))))
	return min(max(n, 0), ratios-1)
}

// add adds a claim, or a bucket of a server below.
func (v *curve) add(b Bucket) {
	if b.Wants <= 0 {
		return
	}
	sum := &v.sums[min(max(b.Band, 1), MaxBands)-1][ratio(b.Weight, b.Wants)]
	sum.Weight = min(sum.Weight+b.Weight, MaxBucketWeight)
	sum.Wants = min(sum.Wants+b.Wants, MaxAmount)
}

// buckets appends the buckets that are not empty.
func (v *curve) buckets(to []Bucket) []Bucket {
	for band := range v.sums {
		for i := range v.sums[band] {
			if b := v.sums[band][i]; b.Wants > 0 {
				b.Band = band + 1
				to = append(to, b)
			}
		}
	}
	return to
}

// wants returns the sum of the wants of buckets, at most MaxAmount.
func wants(buckets []Bucket) int64 {
	var sum int64
	for _, b := range buckets {
		sum = min(sum+b.Wants, MaxAmount)
	}
	return sum
}

// coarse returns one bucket for each band.
func coarse(buckets []Bucket) []Bucket {
	var sums [MaxBands]Bucket
	for _, b := range buckets {
		sum := &sums[b.Band-1]
		sum.Band, sum.Weight, sum.Wants = b.Band, min(sum.Weight+b.Weight, MaxBucketWeight), min(sum.Wants+b.Wants, MaxAmount)
	}
	return slices.DeleteFunc(sums[:], func(b Bucket) bool { return b.Wants == 0 })
}

// keep replaces the buckets of a claim: nil for a holder that is not a server.
func (s *Server) keep(c *claim, next []Bucket) {
	s.kept += len(next) - len(c.buckets)
	switch {
	case next == nil:
		c.buckets = nil
	case len(next) > cap(c.buckets), len(next) < cap(c.buckets)/2, c.buckets == nil:
		c.buckets = append(make([]Bucket, 0, len(next)), next...)
	default:
		c.buckets = append(c.buckets[:0], next...)
	}
}

// differ reports whether two curves differ by more than a hundredth of the wants of the first.
func differ(a, b []Bucket) bool {
	var all, moved int64
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case j == len(b) || i < len(a) && before(a[i], b[j]):
			moved += a[i].Wants
			all += a[i].Wants
			i++
		case i == len(a) || before(b[j], a[i]):
			moved += b[j].Wants
			j++
		default:
			moved += max(a[i].Wants-b[j].Wants, b[j].Wants-a[i].Wants)
			all += a[i].Wants
			i, j = i+1, j+1
		}
	}
	return moved > all/100
}

// before orders buckets as a curve does.
func before(a, b Bucket) bool {
	return a.Band < b.Band || a.Band == b.Band && ratio(a.Weight, a.Wants) < ratio(b.Weight, b.Wants)
}
