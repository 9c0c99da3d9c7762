//go:build !race

package toy

import "testing"

func TestWithout(*testing.T) {}
