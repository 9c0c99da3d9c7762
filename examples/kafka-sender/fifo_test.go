package main

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A fifo does what a slice does that is simply cut, and does not keep memory that it once needed.
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
				t.Fatalf("%d were dropped, want %d", dropped, before-len(want))
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
			t.Fatalf("%d items, want %d", q.len(), len(want))
		}
	}
	if !slices.Equal(q.all(), want) {
		t.Fatalf("%v, want %v", q.all(), want)
	}
	for range 100_000 {
		q.push(1)
	}
	for q.len() > 10 {
		q.pop()
	}
	if c := cap(q.items); c > 1024 {
		t.Errorf("10 items keep %d places", c)
	}
}

func TestBackoff(t *testing.T) {
	for tries := 1; tries < 100; tries++ {
		longest := restMost
		if tries < 8 {
			longest = min(restFirst<<(tries-1), restMost)
		}
		for range 100 {
			if rest := backoff(tries); rest < longest/2 || rest >= longest {
				t.Fatalf("%v after %d tries, want from %v to %v", rest, tries, longest/2, longest)
			}
		}
	}
}
