package postgres_test

import (
	"testing"

	"github.com/headgate/headgate/cmd/internal/testkit/postgres"
	"github.com/headgate/headgate/internal/testkit/process"
)

// TestNothingOutlivesTheTest checks that servers end with a test that is killed.
func TestNothingOutlivesTheTest(t *testing.T) {
	process.CheckEnds(t, func() *process.Server { return &postgres.Start(t).Server })
}
