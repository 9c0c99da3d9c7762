//go:build soak

package memory_test

import (
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/memory"
)

// span is the number of units that passed between two times.
type span struct {
	units       int64
	first, last headgate.Instant
}

func (s *span) see(d *headgate.Decision) {
	if d.Verdict != headgate.Allow {
		return
	}
	if s.units == 0 || d.At < s.first {
		s.first = d.At
	}
	s.units++
	s.last = max(s.last, d.At)
}

// TestSoakRealClock takes 100,000 units a second of one key for half a minute, by Take and
// TakeMany and the real clock. By At, burst and rate are exact.
func TestSoakRealClock(t *testing.T) {
	s, err := memory.New(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	id := prepare(t, s, headgate.Policy{Limit: headgate.Limit{Count: 100_000, Per: time.Second, Burst: 1000}})
	keys := make([]string, 32)
	for i := range keys {
		keys[i] = "hot"
	}
	ends := time.Now().Add(30 * time.Second)
	spans := make([]span, 6)
	var all sync.WaitGroup
	for g := range spans {
		all.Go(func() {
			decisions := make([]headgate.Decision, len(keys))
			for time.Now().Before(ends) {
				if g%2 == 0 {
					_ = s.TakeMany(keys, id, 1, decisions)
				} else {
					for i := range decisions {
						_ = s.Take(&headgate.Op{Key: "hot", Policy: id, Cost: 1}, &decisions[i])
					}
				}
				for i := range decisions {
					spans[g].see(&decisions[i])
				}
			}
		})
	}
	all.Wait()
	total := spans[0]
	for _, s := range spans[1:] {
		total.units += s.units
		total.first, total.last = min(total.first, s.first), max(total.last, s.last)
	}
	bound := int64(total.last-total.first)/10_000 + 1000
	t.Logf("%d passed in %v, bound %d", total.units, total.last.Sub(total.first), bound)
	if total.units > bound {
		t.Errorf("%d passed, more than %d", total.units, bound)
	}
	if total.units < bound*98/100 {
		t.Errorf("%d passed, less than 98 %% of %d: the limit is not used", total.units, bound)
	}
}
