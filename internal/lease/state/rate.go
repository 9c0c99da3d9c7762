package state

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"time"
)

const (
	thousandths = 1000
	perSecond   = thousandths * int64(time.Second)
)

// RateOf returns the rate of count units per time in thousandths of a unit a second. If the rate is no
// whole number of them, or above [MaxAmount], it returns what to write instead. count is not negative, and
// per is positive.
func RateOf(count int64, per time.Duration) (rate int64, fix string) {
	high, low := bits.Mul64(uint64(count), uint64(perSecond))
	if high >= uint64(per) {
		return 0, fmt.Sprintf("use at most %d/s", MaxAmount/thousandths)
	}
	whole, rest := bits.Div64(high, low, uint64(per))
	switch {
	case whole > MaxAmount:
		return 0, fmt.Sprintf("use at most %d/s", MaxAmount/thousandths)
	case rest > 0 && whole == 0:
		return 0, "use at least 1/1000s"
	case rest > 0:
		return 0, fmt.Sprintf("use %d/1000s, which is the next lower one", whole)
	}
	return int64(whole), ""
}

// ResourceOf returns the resource of a name: an equal name first, then the first pattern that matches. It
// is nil if there is none.
func ResourceOf(resources []Resource, name string) *Resource { return find(resources, name) }

// WithCapacities returns a copy of the resources with other capacities for some names. A name that only a
// pattern matches becomes a resource of its own. Names without a resource have no effect.
func WithCapacities(resources []Resource, capacities map[string]int64) []Resource {
	all := slices.Clone(resources)
	for _, name := range slices.Sorted(maps.Keys(capacities)) {
		found := find(resources, name)
		if found == nil {
			continue
		}
		one := *found
		one.Match, one.Capacity = name, capacities[name]
		one.MinCapacity = min(one.MinCapacity, one.Capacity)
		if at := slices.IndexFunc(resources, func(r Resource) bool { return r.Match == name }); at >= 0 {
			all[at] = one
		} else {
			all = append(all, one)
		}
	}
	return all
}
