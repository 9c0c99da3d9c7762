//go:build soak

package acceptance

import (
	"testing"
	"time"
)

// TestSoakServerHandOver restarts the server thirty times in about a minute.
func TestSoakServerHandOver(t *testing.T) { handOver(t, 30, time.Second) }

// TestSoakServerWithoutRedis takes Redis away for a minute, in each way.
func TestSoakServerWithoutRedis(t *testing.T) { withoutRedis(t, time.Minute) }

// TestSoakServerReloadsManyLeaves reloads a tree with 10,000 leaves thirty times.
func TestSoakServerReloadsManyLeaves(t *testing.T) { reloadLeaves(t, 30) }

// TestSoakServerMergesManyFiles changes 10,000 files of one domain.
func TestSoakServerMergesManyFiles(t *testing.T) { mergeFiles(t, 10_000) }

// TestSoakServerManyConnections has 10,000 clients at the same time.
func TestSoakServerManyConnections(t *testing.T) { manyConnections(t, 10_000) }

// TestSoakServerCutsClients has 20 clients with 250 calls each, or with calls without an end.
func TestSoakServerCutsClients(t *testing.T) {
	t.Parallel()
	cutClients(t, 20, 250)
}
