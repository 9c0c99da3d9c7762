//go:build soak

package open

import (
	"context"
	"sync"
	"testing"
	"time"
)

// failovers has all cases of a failover with a store_timeout.
func failovers(timeout time.Duration) (all []swap) {
	for _, fallback := range []string{"deny", "allow", "local"} {
		for _, prefetch := range []bool{false, true} {
			for _, secure := range []bool{false, true} {
				all = append(all, swap{fallback, prefetch, secure, timeout})
			}
		}
	}
	return all
}

// TestSoakFailoversBehindOneAddress has all cases of TestFailoverBehindOneAddress.
func TestSoakFailoversBehindOneAddress(t *testing.T) {
	for _, s := range failovers(swapTimeout) {
		t.Run(s.name(), func(t *testing.T) { failover(t, s).check(t) })
	}
}

// TestSoakStoreTimeout has all cases with the default store_timeout. A decision that the store does not make
// ends at store_timeout, as far as the machine lets it: beside the load, as many goroutines wait for
// a context of the same time and do nothing else. The slowest decision may be as late as the slowest of these, with some time to
// decide by the fallback.
func TestSoakStoreTimeout(t *testing.T) {
	const timeout, decides = 20 * time.Millisecond, 10 * time.Millisecond
	for _, s := range failovers(timeout) {
		t.Run(s.name(), func(t *testing.T) {
			idle := waitIdly(timeout)
			l := failover(t, s)
			waits, slowest := idle()
			late, idlyLate := 0, 0
			for i := range l.all {
				if d := &l.all[i]; d.end.Sub(d.begin) > timeout+time.Millisecond {
					late++
				}
			}
			for _, wait := range waits {
				if wait > timeout+time.Millisecond {
					idlyLate++
				}
			}
			t.Logf("%d decisions, %d without the store: %d took 1 ms longer than %s, the slowest %s; %d waits that do nothing: %d took 1 ms longer, the slowest %s; %d units",
				len(l.all), l.failed, late, timeout, l.slowest, len(waits), idlyLate, slowest, l.admitted)
			if l.slowest > max(slowest, timeout)+decides {
				t.Errorf("a decision took %s, and the slowest wait that does nothing %s", l.slowest, slowest)
			}
			l.checkUnits(t)
		})
	}
}

// waitIdly lets as many goroutines as the load has wait for contexts. The returned function stops them, and
// returns the times.
func waitIdly(timeout time.Duration) (stop func() (waits []time.Duration, slowest time.Duration)) {
	var mu sync.Mutex
	var all []time.Duration
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	for range swapCallers {
		waiting.Go(func() {
			next := time.NewTicker(swapInterval)
			defer next.Stop()
			for ctx.Err() == nil {
				<-next.C
				began := time.Now()
				wait, end := context.WithTimeout(context.Background(), timeout)
				<-wait.Done()
				end()
				mu.Lock()
				all = append(all, time.Since(began))
				mu.Unlock()
			}
		})
	}
	return func() (waits []time.Duration, slowest time.Duration) {
		cancel()
		waiting.Wait()
		for _, wait := range all {
			slowest = max(slowest, wait)
		}
		return all, slowest
	}
}
