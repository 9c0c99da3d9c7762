package headgate_test

import (
	"testing"

	"github.com/headgate/headgate"
)

// TestEdgesPickTheWindow: each of the three windows contains its start, and not its end.
func TestEdgesPickTheWindow(t *testing.T) {
	edges := headgate.Edges{10, 20, 20, 35} // The second window is empty.
	for _, test := range []struct{ at, start, end headgate.Instant }{{10, 10, 20}, {19, 10, 20}, {20, 20, 35}, {34, 20, 35}} {
		start, end, ok := edges.Window(test.at)
		if !ok || start != test.start || end != test.end {
			t.Errorf("Window(%d) = %d, %d, %v, want %d, %d", test.at, start, end, ok, test.start, test.end)
		}
	}
	for _, at := range []headgate.Instant{9, 35, 1000} {
		if _, _, ok := edges.Window(at); ok {
			t.Errorf("Window(%d) finds a window", at)
		}
	}
}

// TestEdgesAreOrdered checks which edges a store accepts.
func TestEdgesAreOrdered(t *testing.T) {
	var none *headgate.Edges
	for _, bad := range []*headgate.Edges{none, {}, {5, 5, 5, 5}, {4, 3, 5, 6}, {1, 2, 4, 3}, {1, 2, 3, 1<<62 + 1}, {-1<<62 - 1, 2, 3, 4}} {
		if bad.Ordered() {
			t.Errorf("%v are ordered", bad)
		}
	}
	for _, good := range []*headgate.Edges{{0, 1, 2, 3}, {1, 1, 2, 2}, {-5, 1, 1, 1}} {
		if !good.Ordered() {
			t.Errorf("%v are not ordered", good)
		}
	}
}

// TestEdgeErrorStatesTheDifference: the text has both times and how far they are apart.
func TestEdgeErrorStatesTheDifference(t *testing.T) {
	const hour = headgate.Instant(3600e9)
	edges := headgate.Edges{24 * hour, 48 * hour, 72 * hour, 96 * hour}
	for at, want := range map[headgate.Instant]string{
		97 * hour: "headgate: the clock of the store is at 1970-01-05T01:00:00Z, 1h0m0s after the window that ends at 1970-01-05T00:00:00Z" +
			": set the clocks of the store and of this instance",
		22 * hour: "headgate: the clock of the store is at 1970-01-01T22:00:00Z, 2h0m0s before the window that begins at 1970-01-02T00:00:00Z" +
			": set the clocks of the store and of this instance",
	} {
		if got := (&headgate.EdgeError{At: at, Edges: edges}).Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
