//go:build soak

package memcached_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/store/memcached"
	"github.com/headgate/headgate/store/storetest"
)

// TestSoakLimitsOfClients prepares one new limit a second for a year. It also prepares 1,000,000
// limits of a minute within a day, and keeps 1,000 of them at a time. Memory stays flat.
func TestSoakLimitsOfClients(t *testing.T) {
	server := testserver.Start(t)
	released := func(t *testing.T, clock *storetest.Clock) headgate.Store {
		t.Helper()
		flush(t, server.Addr)
		return newStore(t, memcached.Config{Servers: []string{server.Addr}, Clock: clock.Now})
	}
	t.Run("a year", func(t *testing.T) {
		storetest.Churn{Limits: 365 * 24 * 3600, Every: time.Second, Per: time.Minute, Kept: 128, Uses: 30}.Run(t, released)
	})
	t.Run("a day", func(t *testing.T) {
		storetest.Churn{Limits: 1_000_000, Every: 86_400 * time.Microsecond, Per: time.Minute, Kept: 1000}.Run(t, released)
	})
	t.Run("full", func(t *testing.T) { storetest.Fill(t, released) })
}
