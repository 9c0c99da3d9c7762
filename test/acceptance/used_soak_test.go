//go:build soak

package acceptance

import "testing"

// How much of a shared limit must be used, with demand spread evenly and with one busy
// process: the bars, for a machine that has nothing else to do.
const (
	leastUsedEvenly = 0.99
	leastUsedByOne  = 0.95
)

// TestSoakOneLimit is TestOneLimitOverManyProcesses, held to the bars.
func TestSoakOneLimit(t *testing.T) { oneLimitOverManyProcesses(t) }
