//go:build soak

package app

import (
	"testing"
)

// TestSoakSectionsStart crosses each two sections.
func TestSoakSectionsStart(t *testing.T) { crossSections(t, 1) }
