package main

import "slices"

// fifo is a queue that frees memory as it empties. The zero fifo is empty.
type fifo[T any] struct {
	items []T
	head  int
}

func (q *fifo[T]) len() int { return len(q.items) - q.head }

func (q *fifo[T]) push(item T) { q.items = append(q.items, item) }

func (q *fifo[T]) first() (item T, ok bool) {
	if q.len() == 0 {
		return item, false
	}
	return q.items[q.head], true
}

func (q *fifo[T]) pop() (item T, ok bool) {
	item, ok = q.first()
	if !ok {
		return item, false
	}
	var none T
	q.items[q.head] = none
	q.head++
	if q.head*2 > len(q.items) { // This condition moves each item at most once on average.
		q.compact()
	}
	return item, true
}

// all returns the items from the first one. The result is valid until the queue changes.
func (q *fifo[T]) all() []T { return q.items[q.head:] }

// remove removes the items for which drop reports true, and returns their number.
func (q *fifo[T]) remove(drop func(T) bool) int {
	before := q.len()
	q.compact()
	q.items = slices.DeleteFunc(q.items, drop)
	return before - q.len()
}

func (q *fifo[T]) compact() {
	n := copy(q.items, q.items[q.head:])
	clear(q.items[n:])
	q.items, q.head = q.items[:n], 0
	if c := cap(q.items); c > 1024 && n < c/8 {
		q.items = append(make([]T, 0, c/4), q.items...)
	}
}
