package memcached_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/internal/testkit/onekey"
	"github.com/headgate/headgate/store/memcached"
)

// TestOneKey: an operator reads, resets and bans a key while 64 callers take its units, with fixed windows in items and in
// counters. The clock is this machine's: an estimate of the server's would be corrected during the first seconds, by tens of milliseconds.
func TestOneKey(t *testing.T) {
	server := testserver.Start(t)
	began := time.Now()
	clock := func() headgate.Instant { return headgate.Instant(began.Add(time.Since(began)).UnixNano()) }
	for name, counters := range map[string]bool{"Items": false, "Counters": true} {
		t.Run(name, func(t *testing.T) {
			onekey.Run(t, func(t *testing.T) headgate.Store {
				t.Helper()
				return newStore(t, memcached.Config{Servers: []string{server.Addr}, Counters: counters, Clock: clock})
			}, headgate.SlidingLog)
		})
	}
}
