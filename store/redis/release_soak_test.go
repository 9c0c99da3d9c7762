//go:build soak

package redis_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
	"github.com/headgate/headgate/store/storetest"
)

// TestSoakLimitsOfClients prepares one new limit a second for a year. It also prepares 1,000,000
// limits of a minute within a day, and keeps 1,000 of them at a time. Memory stays flat.
func TestSoakLimitsOfClients(t *testing.T) {
	addr := testserver.Start(t).Addr
	client := newClient(t, addr)
	released := func(t *testing.T, clock *storetest.Clock) headgate.Store {
		t.Helper()
		flush(t, client)
		return open(t, redis.Config{Client: rueidis.ClientOption{InitAddress: []string{addr}}, Timeout: patience, Clock: clock.Now})
	}
	t.Run("a year", func(t *testing.T) {
		storetest.Churn{Limits: 365 * 24 * 3600, Every: time.Second, Per: time.Minute, Kept: 128, Uses: 30}.Run(t, released)
	})
	t.Run("a day", func(t *testing.T) {
		storetest.Churn{Limits: 1_000_000, Every: 86_400 * time.Microsecond, Per: time.Minute, Kept: 1000}.Run(t, released)
	})
	t.Run("full", func(t *testing.T) { storetest.Fill(t, released) })
}
