package http1_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/http1"
)

// TestAppendNames checks the order of names, and that a list with capacity is used again.
func TestAppendNames(t *testing.T) {
	h := http.Header{"C": {"1"}, "A": {"2"}, "D": {"3"}, "B": {"4"}}
	skipped := "C"
	names := make([]string, 0, len(h))
	allocs := testing.AllocsPerRun(100, func() {
		names = http1.AppendNames(append(names[:0], "Z"), h, func(name string) bool { return name == skipped })
	})
	if want := []string{"Z", "A", "B", "D"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	if allocs > 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}
