//go:build soak

package acceptance

import (
	"testing"
	"time"
)

// TestSoakServerHandOver restarts the server thirty times in about a minute.
func TestSoakServerHandOver(t *testing.T) { handOver(t, 30, time.Second) }

// TestSoakServerWithoutRedis takes Redis away for a minute, in each way. The store_timeout is 100 ms, and the
// store is probed every 2 s or more often.
func TestSoakServerWithoutRedis(t *testing.T) {
	withoutRedis(t, time.Minute, outageBounds{timeout: 100 * time.Millisecond, calls: 250 * time.Millisecond, recovery: 3 * time.Second})
}

// slowestReload bounds the time that the server takes for 99% of the calls while it reloads. It catches calls
// that wait for a reload.
const slowestReload = 25 * time.Millisecond

// TestSoakServerReloadsManyLeaves reloads a tree with 10,000 leaves thirty times.
func TestSoakServerReloadsManyLeaves(t *testing.T) { reloadLeaves(t, 30, slowestReload) }

// TestSoakServerMergesManyFiles changes 10,000 files of one domain.
func TestSoakServerMergesManyFiles(t *testing.T) { mergeFiles(t, 10_000, slowestReload) }

// TestSoakServerManyConnections has 10,000 clients at the same time.
func TestSoakServerManyConnections(t *testing.T) { manyConnections(t, 10_000) }

// TestSoakServerCutsClients has up to 20 clients with 250 calls each.
func TestSoakServerCutsClients(t *testing.T) {
	t.Parallel()
	cutClients(t, 20, 250)
}
