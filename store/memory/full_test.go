package memory_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// full is a store whose keys are all limited, without room for a further key.
type full struct {
	store *memory.Store
	clock *storetest.Clock
	id    headgate.PolicyID
	keys  int
}

// fill takes the whole limit of one key after another, in pieces, until many in a row are refused.
func fill(tb testing.TB, bytes int64, p headgate.Policy, pieces int64) *full {
	tb.Helper()
	f := &full{clock: storetest.NewClock()}
	var err error
	if f.store, err = memory.New(memory.Config{MaxMemory: bytes, BlockShare: 75, Clock: f.clock.Now}); err != nil {
		tb.Fatal(err)
	}
	if f.id, err = f.store.Prepare(p); err != nil {
		tb.Fatal(err)
	}
	for refused := 0; refused < 2000; f.keys++ {
		d := f.take(tb, "user "+strconv.Itoa(f.keys), p.Limit.Count/pieces)
		for range pieces - 1 {
			f.clock.Advance(time.Microsecond)
			f.take(tb, "user "+strconv.Itoa(f.keys), p.Limit.Count/pieces)
		}
		if refused++; d.Reason != headgate.StoreFull {
			refused = 0
		}
	}
	return f
}

func (f *full) take(tb testing.TB, key string, n int64) headgate.Decision {
	tb.Helper()
	var d headgate.Decision
	if err := f.store.Take(&headgate.Op{Key: key, Policy: f.id, Cost: n}, &d); err != nil {
		tb.Fatal(err)
	}
	return d
}

// limits are two limits of a day whose states need blocks, and one whose state does not.
func limits() map[string]headgate.Policy {
	day := headgate.Limit{Count: 20, Per: 24 * time.Hour}
	return map[string]headgate.Policy{
		"sliding_log":    {Algorithm: headgate.SlidingLog, Limit: day},
		"sliding_window": {Algorithm: headgate.SlidingWindow, Limit: day, SubWindows: 10},
		"token_bucket":   {Limit: day},
	}
}

// TestRetryAfterOfAFullStore: a key that is refused without room passes after its RetryAfter, and
// not much before.
func TestRetryAfterOfAFullStore(t *testing.T) {
	for name, p := range limits() {
		t.Run(name, func(t *testing.T) {
			f := fill(t, 1<<20, p, 4)
			for i := range 20 {
				key := fmt.Sprint("newcomer ", i)
				d := f.take(t, key, 1)
				if d.Reason != headgate.StoreFull {
					continue // A key has just become less than limited.
				}
				if d.RetryAfter <= 0 || d.RetryAfter > 24*time.Hour {
					t.Fatalf("%s has %+v, want a RetryAfter within a day", key, d)
				}
				f.clock.Advance(d.RetryAfter)
				if again := f.take(t, key, 1); again.Verdict != headgate.Allow {
					t.Errorf("%s has %+v after a RetryAfter of %v", key, again, d.RetryAfter)
				}
			}
		})
	}
}

// BenchmarkRefusedWithoutBlocks: a new key is refused, because all blocks have states of limited
// keys.
func BenchmarkRefusedWithoutBlocks(b *testing.B) {
	for name, p := range limits() {
		for _, mib := range []int64{4, 64} {
			b.Run(fmt.Sprintf("%s/%d MiB", name, mib), func(b *testing.B) {
				f := fill(b, mib<<20, p, 20)
				keys := make([]string, 1<<16)
				for i := range keys {
					keys[i] = "newcomer " + strconv.Itoa(i)
				}
				admitted := 0
				for i := 0; b.Loop(); i++ {
					if f.take(b, keys[i%len(keys)], 1).Verdict == headgate.Allow {
						admitted++
					}
				}
				b.ReportMetric(100*float64(admitted)/float64(b.N), "%-admitted")
			})
		}
	}
}
