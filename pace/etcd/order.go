package etcd

import "slices"

// keepOrder gives the index of each member. living are the live instances in the order in which
// they joined. An instance keeps its index. A new one takes the index of one that has left, or is
// appended. The last instance takes an index that is still free.
func keepOrder(old, living []string) []string {
	left := make(map[string]bool, len(living)) // The live instances without an index so far.
	for _, id := range living {
		left[id] = true
	}
	order := slices.Clone(old)
	var gaps []int
	for i, id := range order {
		if left[id] {
			delete(left, id)
		} else {
			gaps = append(gaps, i)
		}
	}
	for _, id := range living {
		switch {
		case !left[id]:
			continue
		case len(gaps) > 0:
			order[gaps[0]], gaps = id, gaps[1:]
		default:
			order = append(order, id)
		}
		delete(left, id)
	}
	for len(gaps) > 0 { // No instance was appended: the gaps are in old.
		last := len(order) - 1
		if gaps[len(gaps)-1] == last {
			gaps = gaps[:len(gaps)-1]
		} else {
			order[gaps[0]], gaps = order[last], gaps[1:]
		}
		order = order[:last]
	}
	return order
}
