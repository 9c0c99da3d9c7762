package sim

// Queue gives its elements in order. It is a binary heap: container/heap would allocate for each element. Set Before first.
type Queue[T any] struct {
	// Before reports whether a comes before b.
	Before func(a, b T) bool

	all []T
}

// Len returns the number of elements.
func (q *Queue[T]) Len() int { return len(q.all) }

// First returns the first element of a queue that is not empty.
func (q *Queue[T]) First() T { return q.all[0] }

// Push adds an element.
func (q *Queue[T]) Push(x T) {
	q.all = append(q.all, x)
	for i := len(q.all) - 1; i > 0 && q.Before(q.all[i], q.all[(i-1)/2]); i = (i - 1) / 2 {
		q.all[i], q.all[(i-1)/2] = q.all[(i-1)/2], q.all[i]
	}
}

// Pop removes and returns the first element of a queue that is not empty.
func (q *Queue[T]) Pop() T {
	var zero T
	first, last := q.all[0], len(q.all)-1
	q.all[0], q.all[last] = q.all[last], zero
	q.all = q.all[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first
		}
		if child+1 < last && q.Before(q.all[child+1], q.all[child]) {
			child++
		}
		if !q.Before(q.all[child], q.all[i]) {
			return first
		}
		q.all[i], q.all[child] = q.all[child], q.all[i]
		i = child
	}
}
