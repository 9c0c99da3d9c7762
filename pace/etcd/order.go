package etcd

import "slices"

// keepOrder gives who has which index, when living are those who live, in the order in
// which they came. Who was there keeps its index; a joiner takes that of one who is
// gone, or is appended; of those whose index nobody wants, the last takes it.
func keepOrder(old, living []string) []string {
	left := make(map[string]bool, len(living)) // Who lives and has no index yet.
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
	for len(gaps) > 0 { // Nobody was appended: the gaps are in old.
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
