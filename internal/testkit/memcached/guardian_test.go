package memcached_test

import (
	"testing"

	"github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/internal/testkit/process"
)

// TestNothingOutlivesTheTest checks that servers end with a test that is killed.
func TestNothingOutlivesTheTest(t *testing.T) {
	process.CheckEnds(t, func() *process.Server { return &memcached.Start(t).Server })
}
