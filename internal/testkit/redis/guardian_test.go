package redis_test

import (
	"testing"

	"github.com/headgate/headgate/internal/testkit/process"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestNothingOutlivesTheTest checks that servers end with a test that is killed.
func TestNothingOutlivesTheTest(t *testing.T) {
	process.CheckEnds(t, func() *process.Server { return &redis.Start(t).Server })
}
