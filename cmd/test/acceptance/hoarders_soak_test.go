//go:build soak

package acceptance

import (
	"fmt"
	"testing"
	"time"
)

// TestSoakStreamsThatAreNotRead needs a hard limit of 17,000 open files (ulimit -Hn). The
// clients, the proxy and the upstream are separate processes.
func TestSoakStreamsThatAreNotRead(t *testing.T) {
	for _, connections := range []int{256, 1024, 16_384} {
		t.Run(fmt.Sprintf("%d connections", connections), func(t *testing.T) {
			(&hoarding{connections: connections, streams: 250, idle: 5 * time.Second, late: 5 * time.Second}).run(t)
		})
	}
	t.Run("256 connections with TLS", func(t *testing.T) {
		(&hoarding{connections: 256, streams: 250, idle: 5 * time.Second, late: 5 * time.Second, secure: true}).run(t)
	})
}

func TestSoakIdleConnectionsGiveWay(t *testing.T) {
	idlers{bound: 2000, connections: 2500}.run(t)
}
