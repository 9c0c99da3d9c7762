//go:build soak

package acceptance

import "testing"

// The least used part of a shared limit on an idle machine, with even demand and with one busy
// process.
const (
	leastUsedEvenly = 0.99
	leastUsedByOne  = 0.95
)

// TestSoakOneLimit is TestOneLimitOverManyProcesses with the strict bars.
func TestSoakOneLimit(t *testing.T) { oneLimitOverManyProcesses(t) }
