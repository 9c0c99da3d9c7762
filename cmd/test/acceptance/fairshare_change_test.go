package acceptance

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestCapacityChangesUnderLoad lowers and raises the capacity within a cycle while all clients
// exceed it. Each cycle admits at most the largest capacity that was valid in that cycle. A
// cycle without a change admits at most its capacity.
func TestCapacityChangesUnderLoad(t *testing.T) {
	i := startCrowded(t, "capacity: 1000, cycle: 200ms")
	text, err := os.ReadFile(i.path)
	if err != nil {
		t.Fatal(err)
	}
	const cycle = 200 * time.Millisecond
	l := &traffic{cycle: cycle, cycles: 15, streams: []*stream{
		{to: i.Proxy, connections: 16, rate: steadily(400), request: anyOf("owner", 3)},
	}}
	capacities := []int64{1000, 100, 300, 50}
	// between has the earliest and the latest time of each change.
	var between [][2]int64
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		l.run(t)
	}()
	for _, capacity := range capacities[1:] {
		<-time.After(600 * time.Millisecond)
		from := time.Now().UnixMicro()
		replace(t, i.path, []byte(strings.Replace(string(text), "capacity: 1000", fmt.Sprint("capacity: ", capacity), 1)))
		i.hangup(t)
		between = append(between, [2]int64{from, time.Now().UnixMicro()})
	}
	<-asked
	admitted := map[int64]int64{}
	for _, d := range i.end(t, l) {
		if d.passed {
			admitted[d.at/cycle.Microseconds()]++
		}
	}
	lowered := 0
	for n, used := range admitted {
		most := capacityIn(n*cycle.Microseconds(), (n+1)*cycle.Microseconds(), capacities, between)
		if used > most {
			t.Errorf("a cycle admitted %d, want at most %d", used, most)
		}
		if most < capacities[0] && used > most/2 {
			lowered++
		}
	}
	if lowered < 3 {
		t.Errorf("%d cycles of a lowered capacity used it: the test says nothing: %v", lowered, admitted)
	}
}

// capacityIn gives the largest capacity that may have been valid in a cycle.
func capacityIn(start, end int64, capacities []int64, between [][2]int64) int64 {
	var most int64
	for n, capacity := range capacities {
		from, to := int64(0), end
		if n > 0 {
			from = between[n-1][0]
		}
		if n < len(between) {
			to = between[n][1]
		}
		if from < end && to >= start {
			most = max(most, capacity)
		}
	}
	return most
}

// TestDemoShowsLending: the clients of headgate demo lend and borrow, and the total stays within
// the capacity.
func TestDemoShowsLending(t *testing.T) {
	t.Parallel()
	status, out, faults := call(t, "demo", "--for", "8s")
	if status != 0 || faults != "" {
		t.Fatalf("status %d: %s", status, faults)
	}
	lent := false
	for line := range strings.Lines(out) {
		var cycle int
		var sizes, admitted, asked [4]int
		_, err := fmt.Sscanf(line, "cycle %d  A %d: %d of %d  B %d: %d of %d  C %d: %d of %d  D %d: %d of %d", &cycle,
			&sizes[0], &admitted[0], &asked[0], &sizes[1], &admitted[1], &asked[1],
			&sizes[2], &admitted[2], &asked[2], &sizes[3], &admitted[3], &asked[3])
		if err != nil {
			continue
		}
		if sizes[0]+sizes[1]+sizes[2]+sizes[3] != 40 || admitted[0]+admitted[1]+admitted[2]+admitted[3] > 40 {
			t.Errorf("sizes and admissions of 40: %s", line)
		}
		if cycle > 1 && sizes[0] < 10 && sizes[1] > 10 && admitted[1] > 10 {
			lent = true
		}
	}
	if !lent {
		t.Errorf("the demo shows no cycle in which B borrows what A lends:\n%s", out)
	}
}
