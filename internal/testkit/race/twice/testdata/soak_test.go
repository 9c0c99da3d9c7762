//go:build soak

package toy

import (
	"testing"

	"github.com/headgate/headgate/internal/testkit/race"
)

func TestSoak(t *testing.T) { t.Log(race.On) }
