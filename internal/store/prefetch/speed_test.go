//go:build soak

package prefetch_test

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/store/memory"
)

// cpu gives the processor time of the process.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestSoakStashIsAsFastAsMemory compares a unit from a stash with Take of store/memory on the
// same hot keys, in turns. It measures processor time, so other work on the machine counts
// little. The bar is 0.8. The test fails below 0.6 only, because of busy machines;
// `go test -v` prints the figures.
func TestSoakStashIsAsFastAsMemory(t *testing.T) {
	for _, c := range []struct {
		keys, workers int
	}{{1, 1}, {16, 1}, {1024, 1}, {1, 2}, {16, 2}} {
		for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow} {
			t.Run(fmt.Sprintf("%d keys %d workers %s", c.keys, c.workers, a), func(t *testing.T) {
				plain := ample(a)
				plain.Hold, plain.Batch = 0, 0
				mem, _ := memory.New(memory.Config{})
				front := behind(t, newSource(t, nil), prefetch.Config{})
				id, held := prepare(t, mem, plain), prepare(t, front, ample(a))
				var ratios []float64
				var sums [2]time.Duration
				for range 25 {
					m := hammer(t, c.keys, c.workers, id, mem.Take)
					p := hammer(t, c.keys, c.workers, held, func(op *headgate.Op, d *headgate.Decision) error {
						return front.Take(t.Context(), op, d)
					})
					ratios = append(ratios, float64(m)/float64(p))
					sums[0], sums[1] = sums[0]+m, sums[1]+p
				}
				slices.Sort(ratios)
				t.Logf("memory %v, stash %v a unit; throughput ratio: median %.2f of %.2f to %.2f",
					sums[0]/25/takes, sums[1]/25/takes, ratios[12], ratios[3], ratios[21])
				if ratios[12] < 0.6 {
					t.Errorf("a unit from a stash is at %.2f of the throughput of memory, below 0.8", ratios[12])
				}
			})
		}
	}
}

const takes = 20_000

// hammer takes one unit at a time, and gives the total processor time.
func hammer(t *testing.T, keys, workers int, id headgate.PolicyID, take func(*headgate.Op, *headgate.Decision) error) time.Duration {
	t.Helper()
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("customer-%d", i)
	}
	began := cpu(t)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			op := headgate.Op{Policy: id, Cost: 1}
			var d headgate.Decision
			for i := range takes / workers {
				op.Key = names[i%keys]
				if err := take(&op, &d); err != nil || d.Verdict != headgate.Allow {
					t.Errorf("%+v, %v", d, err)
					return
				}
			}
		})
	}
	all.Wait()
	return cpu(t) - began
}
