package main

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A fifo behaves like a slice and frees memory that it no longer needs.
func TestFIFO(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	var q fifo[int]
	var want []int
	for n := range 100_000 {
		grows := n/10_000%2 == 0
		switch k := chance.IntN(100); {
		case k == 0:
			odd := func(i int) bool { return i%7 == 1 }
			before := len(want)
			want = slices.DeleteFunc(want, odd)
			if dropped := q.remove(odd); dropped != before-len(want) {
				t.Fatalf("got %d removed items, want %d", dropped, before-len(want))
			}
		case k < 60 == grows:
			q.push(n)
			want = append(want, n)
		default:
			item, ok := q.pop()
			if ok != (len(want) > 0) || ok && item != want[0] {
				t.Fatalf("got %d %t, want the first of %d", item, ok, len(want))
			}
			want = want[min(1, len(want)):]
		}
		if q.len() != len(want) {
			t.Fatalf("got %d items, want %d", q.len(), len(want))
		}
	}
	if !slices.Equal(q.all(), want) {
		t.Fatalf("got %v, want %v", q.all(), want)
	}
	for range 100_000 {
		q.push(1)
	}
	for q.len() > 10 {
		q.pop()
	}
	if c := cap(q.items); c > 1024 {
		t.Errorf("10 items use a capacity of %d", c)
	}
}

func TestBackoff(t *testing.T) {
	for tries := 1; tries < 100; tries++ {
		longest := backoffMax
		if tries < 8 {
			longest = min(backoffFirst<<(tries-1), backoffMax)
		}
		for range 100 {
			if rest := retryDelay(tries); rest < longest/2 || rest >= longest {
				t.Fatalf("got delay %v after %d tries, want %v to %v", rest, tries, longest/2, longest)
			}
		}
	}
}
