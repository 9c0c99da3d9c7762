package fairshare

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
)

// swarm is a stream of invented names in addition to known clients.
type swarm struct {
	says  string
	known int
	same  bool // the same names arrive in every cycle
	times int  // requests of each name per cycle
	// kept is the minimum served part of the known clients' demand, which is 80 % of their
	// earlier shares. within is the minimum served part of the demand within the current
	// default shares. With 0 the test does not check the value.
	kept, within float64
}

// swarmed is the demand and the served units of the known clients.
type swarmed struct{ asked, served, within, withinServed int }

const (
	swarmNames    = 10_000 // per cycle
	swarmCapacity = 2000
	swarmCycles   = 10
	swarmWarm     = 5
)

// play sends steady requests of the known clients for 80 % of their shares, first alone and
// then beside the swarm. It returns the largest number of units admitted in a cycle, and
// the growth of the heap.
func (s swarm) play(t *testing.T, reclaim Reclaim) (got swarmed, most, grown int64) {
	t.Helper()
	l := storyOf(t, Config{
		Capacity: swarmCapacity, Cycle: storyCycle, Reservation: 10, Reclaim: reclaim, NewClientsPerCycle: 10, ForgetAfter: 30, MaxClients: 1000,
	})
	names := make([]string, swarmNames)
	for i := range names {
		names[i] = fmt.Sprintf("invented-%d", i)
	}
	admitted := map[headgate.Instant]int64{}
	take := func(now headgate.Instant, name string) bool {
		d, _ := l.Take(now, Request{Client: name})
		if d.Verdict == headgate.Allow {
			admitted[d.At-d.At%headgate.Instant(storyCycle)]++
		}
		return d.Verdict == headgate.Allow
	}
	before := heapSize()
	for cycle := range swarmWarm + swarmCycles {
		asked, due := make([]int64, s.known), 0.0
		for i := range swarmNames {
			now := storyStart.Add(storyCycle*time.Duration(cycle) + storyCycle*time.Duration(i)/swarmNames)
			for due += 0.8 * swarmCapacity / swarmNames; due >= 1; due-- {
				who := i % s.known
				served := take(now, fmt.Sprintf("known-%d", who))
				if cycle < swarmWarm {
					continue
				}
				fair := l.current.Load().find(fmt.Sprintf("known-%d", who)).fair.Load()
				asked[who]++
				got.count(served, asked[who] <= fair)
			}
			if cycle < swarmWarm {
				continue
			}
			name := names[i]
			if !s.same {
				name = fmt.Sprintf("invented-%d-%d", cycle, i)
			}
			for range s.times {
				take(now, name)
			}
		}
	}
	grown = heapSize() - before
	for _, n := range admitted {
		most = max(most, n)
	}
	runtime.KeepAlive(l)
	runtime.KeepAlive(names)
	return got, most, grown
}

func (g *swarmed) count(served, within bool) {
	g.asked++
	if served {
		g.served++
	}
	if within {
		g.within++
		if served {
			g.withinServed++
		}
	}
}

func (g *swarmed) parts() (kept, within float64) {
	return float64(g.served) / float64(g.asked), float64(g.withinServed) / float64(max(1, g.within))
}

func heapSize() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestInventedNames sends 10,000 invented names per cycle for ten cycles. No cycle may admit
// more than the capacity, and memory must not grow. The known clients must keep at least
// four fifths of their demand.
func TestInventedNames(t *testing.T) {
	if race.On {
		return // It has one goroutine, so the race detector finds nothing.
	}
	const mostGrown = 1 << 20 // The table of names takes 96 KiB, and each of about 200 clients less than 1 KiB.
	for _, s := range []swarm{
		{"new names each cycle", 3, false, 1, 0.8, 0.8},
		{"new names each cycle", 10, false, 1, 0.8, 0.8},
		{"new names each cycle, 20 requests each", 3, false, 20, 0.8, 0.8},
		{"new names each cycle, 20 requests each", 10, false, 20, 0.8, 0.8},
		{"the same names each cycle", 3, true, 1, 0.8, 0.8},
		{"the same names each cycle", 10, true, 1, 0.8, 0.8},
		{"the same names each cycle, 20 requests each", 3, true, 20, 0, 0.8},
		{"the same names each cycle, 20 requests each", 10, true, 20, 0, 0.8},
	} {
		for _, reclaim := range Reclaims() {
			t.Run(fmt.Sprintf("%d known, %s/%v", s.known, s.says, reclaim), func(t *testing.T) {
				got, most, grown := s.play(t, reclaim)
				kept, within := got.parts()
				t.Logf("served %.4f of %d requests and %.4f of %d within the default shares; at most %d of %d units per cycle; the heap grew by %d KiB", kept, got.asked, within, got.within, most, swarmCapacity, grown>>10)
				if most > swarmCapacity {
					t.Errorf("a cycle admits %d units, above the capacity %d", most, swarmCapacity)
				}
				if kept < s.kept || within < s.within {
					t.Errorf("known clients are served %.4f of their demand, and %.4f of it within their default shares; want at least %.2f and %.2f", kept, within, s.kept, s.within)
				}
				if grown > mostGrown {
					t.Errorf("the heap grew by %d KiB, want at most %d", grown>>10, mostGrown>>10)
				}
			})
		}
	}
}
