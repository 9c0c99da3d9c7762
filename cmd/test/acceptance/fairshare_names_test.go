package acceptance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// invention is a flood of new names, beside three clients that demand four fifths of their
// default shares.
type invention struct {
	names  float64 // in a cycle
	cycles int     // cycles with new names
}

// The number of known clients, and the cycles for which they are known before the flood.
const (
	known        = 3
	knownMean    = 400
	knownShare   = crowdCapacity / (known + 1)
	knownCycles  = 2
	mostHeapGoal = 52 << 20 // 32 MiB of garbage, and what is in use: 15 MiB without the flood.
	inventedPath = "invented"
)

// invented gives a request with a new name each time.
func invented() func(*rand.Rand) []byte {
	n := 0
	return func(random *rand.Rand) []byte {
		n++
		return fmt.Appendf(nil, "GET /"+inventedPath+" HTTP/1.1\r\nHost: a\r\nX-Client-Id: %x-%d\r\n\r\n", random.Uint64(), n)
	}
}

// TestInventedNames: new names get no extra capacity, take little from known clients, and use no
// extra memory.
func TestInventedNames(t *testing.T) {
	invention{names: 3000, cycles: 4}.run(t, "at_once")
}

func (c invention) run(t *testing.T, reclaim string) {
	t.Helper()
	i := startCrowded(t, fmt.Sprintf("capacity: %d, cycle: 1s, reclaim: %s", crowdCapacity, reclaim))
	l := &traffic{cycle: time.Second, cycles: knownCycles + c.cycles, streams: []*stream{
		{to: i.Proxy, connections: 32, rate: steadily(known * knownMean), request: anyOf("owner", known)},
		{to: i.Proxy, connections: 32, request: invented(), rate: func(cycle int) float64 {
			if cycle < knownCycles {
				return 0
			}
			return c.names
		}},
	}}
	l.run(t)
	goal := int64(0)
	eventually(t, "a garbage collection that finds little memory in use", func() bool {
		goal = heapGoal(t, i.instance)
		return goal <= mostHeapGoal
	})
	shares := askShares(t, i.instance)
	_, metrics := get(t, "http://"+i.Health+"/metrics")
	all := i.end(t, l)
	j := sharedOut{cycle: time.Second, capacity: crowdCapacity, fair: knownShare, warm: knownCycles, cycles: l.cycles}.judge(all)
	t.Logf("%s: %d decisions; %v", reclaim, len(all), j)
	t.Logf("%s: %d clients with shares; the heap's goal is %d KiB", reclaim, len(shares.Clients), goal>>10)
	if j.most > crowdCapacity {
		t.Errorf("%s: a cycle admitted %d of %d", reclaim, j.most, crowdCapacity)
	}
	// ten new names a cycle, and the bucket of all other names
	if most := known + 10*(knownCycles+c.cycles+1) + 1; len(shares.Clients) > most || strings.Count(metrics, "\nheadgate_share_size_units{") > most {
		t.Errorf("%s: %d clients, and %d series of sizes: want at most %d of each", reclaim,
			len(shares.Clients), strings.Count(metrics, "\nheadgate_share_size_units{"), most)
	}
	for name, kept := range keeps(all) {
		t.Logf("%s: %s keeps %.4f of its share", reclaim, name, kept)
		if kept < 0.8 {
			t.Errorf("%s: %s keeps %.4f of its share, want 0.8", reclaim, name, kept)
		}
	}
}

// heapGoal gives the heap size, in bytes, at which the next garbage collection begins: what the last one found in use, and as much
// garbage, or 32 MiB if that is more. Peak memory also depends on how late a busy machine lets the collector run.
func heapGoal(t *testing.T, i *instance) int64 {
	t.Helper()
	return int64(metric(t, i, "go_memstats_next_gc_bytes"))
}

// keeps gives the kept part of each known client's share since the start of the flood: its
// admitted requests, divided by its requests within its default share.
func keeps(all []decided) map[string]float64 {
	type count struct{ asked, admitted int }
	cycles := map[int64]map[string]*count{}
	flooded := int64(-1)
	for _, d := range all {
		second := d.at / 1e6
		if d.client == inventedPath {
			if flooded < 0 {
				flooded = second
			}
			continue
		}
		if cycles[second] == nil {
			cycles[second] = map[string]*count{}
		}
		c := cycles[second][d.client]
		if c == nil {
			c = &count{}
			cycles[second][d.client] = c
		}
		c.asked++
		if d.passed {
			c.admitted++
		}
	}
	sum := map[string]*count{}
	for second, clients := range cycles {
		for name, c := range clients {
			if sum[name] == nil {
				sum[name] = &count{}
			}
			if second >= flooded {
				sum[name].asked += min(c.asked, knownShare)
				sum[name].admitted += min(c.admitted, knownShare)
			}
		}
	}
	kept := map[string]float64{}
	for name, c := range sum {
		kept[name] = float64(c.admitted) / float64(max(1, c.asked))
	}
	return kept
}
