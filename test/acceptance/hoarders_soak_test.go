//go:build soak

package acceptance

import (
	"testing"
	"time"
)

// TestSoakStreamsThatAreNotRead needs 17,000 open files (ulimit -n).
func TestSoakStreamsThatAreNotRead(t *testing.T) {
	hoarding{connections: 16_384, streams: 250, idle: 5 * time.Second}.run(t)
}

func TestSoakIdleConnectionsGiveWay(t *testing.T) {
	idlers{bound: 2000, connections: 2500}.run(t)
}
