//go:build soak

package acceptance

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// strict has the bars of the documents: no decision takes longer than store_timeout and 20 ms,
// all is well 5 s after the promotion, and the breaker of a healthy node stays closed.
func strict(timeout time.Duration) bars {
	return bars{
		circumstances: circumstances{timeout: timeout, keys: 200, rate: 1500},
		decision:      timeout + 20*time.Millisecond, clean: 5 * time.Second, blamed: 0, strays: 5,
	}
}

// TestSoakClusterFailover checks the failover of a cluster against the strict bars.
func TestSoakClusterFailover(t *testing.T) {
	busy(t)
	clusterFailover(t, strict(20*time.Millisecond))
}

// TestSoakSentinelFailover checks a failover by sentinels against the strict bars.
func TestSoakSentinelFailover(t *testing.T) {
	busy(t)
	sentinelFailover(t, strict(20*time.Millisecond))
}

// busy logs the used part of the machine's processors at the end of the test: the load, its
// servers, and all other processes.
func busy(t *testing.T) {
	t.Helper()
	read := func() (idle, all float64) {
		text, err := os.ReadFile("/proc/stat")
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		for n, field := range strings.Fields(line)[1:9] {
			ticks, _ := strconv.ParseFloat(field, 64)
			all += ticks
			if n == 3 || n == 4 {
				idle += ticks
			}
		}
		return idle, all
	}
	idle, all := read()
	t.Cleanup(func() {
		idleNow, allNow := read()
		t.Logf("%.0f %% of the processors were at work", 100-100*(idleNow-idle)/(allNow-all))
	})
}

// TestSoakFaults injects each fault in turn, at 1,000 requests a second and with a store_timeout
// of 20 ms.
func TestSoakFaults(t *testing.T) {
	c := circumstances{timeout: 20 * time.Millisecond, keys: 100, rate: 1000}
	for _, f := range append(linkFaults(), serverFaults()...) {
		t.Run(f.name, func(t *testing.T) {
			l := f.befall(t, c)
			if elapsed, bar := quantile(l.durations, 0.999), c.timeout+20*time.Millisecond; elapsed > bar {
				t.Errorf("p99.9 of the decisions is %v, want %v", elapsed, bar)
			}
		})
	}
}
