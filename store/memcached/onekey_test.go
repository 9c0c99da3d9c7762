package memcached_test

import (
	"testing"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/internal/testkit/onekey"
	"github.com/headgate/headgate/store/memcached"
)

// TestOneKey: an operator reads, resets and bans a key while 64 callers take its units, with fixed windows in items and in
// counters.
func TestOneKey(t *testing.T) {
	server := testserver.Start(t)
	for name, counters := range map[string]bool{"Items": false, "Counters": true} {
		t.Run(name, func(t *testing.T) {
			onekey.Run(t, func(t *testing.T) headgate.Store {
				t.Helper()
				return newStore(t, memcached.Config{Servers: []string{server.Addr}, Counters: counters})
			}, headgate.SlidingLog)
		})
	}
}
