//go:build soak

package prefetch_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/store/storetest"
)

// TestSoakLimitsOfClients runs in flat memory: a year of one new limit a second, and
// 1,000,000 limits of a minute within a day, 1,000 at a time.
func TestSoakLimitsOfClients(t *testing.T) {
	t.Run("a year", func(t *testing.T) {
		storetest.Churn{Limits: 365 * 24 * 3600, Every: time.Second, Per: time.Minute, Kept: 128, Uses: 1}.Run(t, released)
	})
	t.Run("a day", func(t *testing.T) {
		storetest.Churn{Limits: 1_000_000, Every: 86_400 * time.Microsecond, Per: time.Minute, Kept: 1000}.Run(t, released)
	})
	t.Run("full", func(t *testing.T) { storetest.Fill(t, released) })
}
