//go:build soak

package acceptance

import (
	"testing"
	"time"
)

// TestSoakServerHandOver restarts the server thirty times in about a minute.
func TestSoakServerHandOver(t *testing.T) { handOver(t, 30, time.Second) }

// TestSoakServerWithoutRedis takes Redis away for a minute, in each way.
func TestSoakServerWithoutRedis(t *testing.T) { withoutRedis(t, time.Minute) }
