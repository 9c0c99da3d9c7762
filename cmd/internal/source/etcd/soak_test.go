//go:build soak

package etcd_test

import (
	"testing"

	"github.com/headgate/headgate/cmd/internal/testkit/sourcetest"
)

// TestSoak runs the long tests of all writers.
func TestSoak(t *testing.T) { sourcetest.Soak(t, start(t)) }
