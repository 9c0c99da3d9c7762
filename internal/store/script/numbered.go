package script

// numbered assigns numbers to values, from 0, in the order of their first use.
type numbered[T comparable] struct {
	list  []T
	index map[T]int // numbers by value; used if list is longer than scanned
}

// scanned is the length up to which a search of the list is faster than a map.
const scanned = 12

func (n *numbered[T]) reset() {
	n.list = n.list[:0]
	clear(n.index)
}

func (n *numbered[T]) number(v T) int {
	if len(n.list) <= scanned {
		for i := range n.list {
			if n.list[i] == v {
				return i
			}
		}
	} else if i, ok := n.index[v]; ok {
		return i
	}
	n.list = append(n.list, v)
	switch {
	case len(n.list) == scanned+1:
		if n.index == nil {
			n.index = make(map[T]int)
		}
		for i := range n.list {
			n.index[n.list[i]] = i
		}
	case len(n.list) > scanned+1:
		n.index[v] = len(n.list) - 1
	}
	return len(n.list) - 1
}
