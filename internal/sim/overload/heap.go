package overload

// ordered is a binary heap. container/heap would allocate for each event.
type ordered[T any] struct {
	all    []T
	before func(a, b T) bool
}

func (h *ordered[T]) push(x T) {
	h.all = append(h.all, x)
	for i := len(h.all) - 1; i > 0 && h.before(h.all[i], h.all[(i-1)/2]); i = (i - 1) / 2 {
		h.all[i], h.all[(i-1)/2] = h.all[(i-1)/2], h.all[i]
	}
}

func (h *ordered[T]) pop() T {
	var zero T
	first, last := h.all[0], len(h.all)-1
	h.all[0], h.all[last] = h.all[last], zero
	h.all = h.all[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first
		}
		if child+1 < last && h.before(h.all[child+1], h.all[child]) {
			child++
		}
		if !h.before(h.all[child], h.all[i]) {
			return first
		}
		h.all[i], h.all[child] = h.all[child], h.all[i]
		i = child
	}
}
