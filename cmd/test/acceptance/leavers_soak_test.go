//go:build soak

package acceptance

import (
	"fmt"
	"testing"
	"time"
)

// TestSoakCrowdThatLeavesProxies: 20,000 clients of one key wait for five seconds each, at three
// instances with one Redis. A tenth of the clients needs less of the machine. The test judges
// intervals of five seconds, because clients and servers share the cores. The log has each
// second.
func TestSoakCrowdThatLeavesProxies(t *testing.T) {
	for _, part := range []int{10, 4, 1} {
		for _, algorithm := range []string{"token_bucket", "leaky_bucket"} {
			t.Run(fmt.Sprintf("1 in %d, %s", part, algorithm), func(t *testing.T) {
				l := leavers{
					algorithm: algorithm, instances: 3, clients: 20_000 / part, rate: 500 / part, maxWaiters: 5000 / part,
					patience: 5 * time.Second, lasts: 30 * time.Second, again: 5 * time.Second,
				}
				l.run(t, 1)
			})
		}
	}
}
