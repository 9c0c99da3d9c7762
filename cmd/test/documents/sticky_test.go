package documents

import (
	"fmt"
	"testing"
)

// stickyClients is the number of clients. A balancer routes each client to one instance, which
// counts alone. Each client always sends more than its limit. Instances are added or removed
// within one window, and a client that moves to another instance is unknown there.
const stickyClients = 10_000

// mix is a hash of two numbers: the finalizer of splitmix64, applied twice.
func mix(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 + b
	for range 2 {
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return x
}

// byModulo routes a client by its hash modulo the number of instances.
func byModulo(client uint64, instances int) int {
	return int(mix(client, 0) % uint64(instances))
}

// byRendezvous routes a client to the instance with the greatest common hash. It is a consistent
// hash: a change of the instances moves as few clients as possible.
func byRendezvous(client uint64, instances int) int {
	best := 0
	for i := range instances {
		if mix(client, uint64(i)+1) > mix(client, uint64(best)+1) {
			best = i
		}
	}
	return best
}

// scaled returns the percentage of clients that move, and the average number of limits that a
// client gets in the window. counts has the numbers of instances, one after another.
func scaled(place func(uint64, int) int, counts []int) (moved, limits float64) {
	movers, sum := 0, 0
	for client := range uint64(stickyClients) {
		seen, places := map[int]bool{}, 0
		last := -1
		for _, n := range counts {
			at := place(client, n)
			if at != last {
				places++
			}
			seen[at], last = true, at
		}
		if places > 1 {
			movers++
		}
		sum += len(seen) // A client gets one limit at each instance, once.
	}
	return 100 * float64(movers) / stickyClients, float64(sum) / stickyClients
}

// TestStickyClients compares the page's table with the simulation.
func TestStickyClients(t *testing.T) {
	var rows []string
	for _, c := range []struct {
		what   string
		counts []int
	}{
		{"10, unchanged", []int{10, 10}},
		{"10 to 11", []int{10, 11}},
		{"10 to 9", []int{10, 9}},
		{"10 to 20, at once", []int{10, 20}},
		{"10 to 20, one by one", []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}},
	} {
		moved, limits := scaled(byModulo, c.counts)
		fewer, less := scaled(byRendezvous, c.counts)
		rows = append(rows, fmt.Sprintf("| %s | %.0f %% | %.2f | %.0f %% | %.2f |", c.what, moved, limits, fewer, less))
	}
	sameTable(t, "sticky clients", rows)
}

// TestStickyFormulas checks that from n to n+1 instances n/(n+1) of the clients move by modulo,
// and 1/(n+1) by a consistent hash.
func TestStickyFormulas(t *testing.T) {
	for _, n := range []int{3, 10, 50} {
		moved, _ := scaled(byModulo, []int{n, n + 1})
		fewer, _ := scaled(byRendezvous, []int{n, n + 1})
		if want := 100 * float64(n) / float64(n+1); moved < want-2 || moved > want+2 {
			t.Errorf("from %d instances to one more: %.1f %% move by modulo, want %.1f", n, moved, want)
		}
		if want := 100 / float64(n+1); fewer < want-2 || fewer > want+2 {
			t.Errorf("from %d instances to one more: %.1f %% move by a consistent hash, want %.1f", n, fewer, want)
		}
	}
}
