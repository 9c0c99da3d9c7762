package listener

import (
	"testing"
)

// TestOverlap lists addresses that keep a listener from another.
func TestOverlap(t *testing.T) {
	for _, row := range []struct {
		one, other string
		want       bool
	}{
		{"127.0.0.1:9", "127.0.0.1:9", true},
		{"127.0.0.1:9", "[::ffff:127.0.0.1]:9", true},
		{"127.0.0.1:9", "0.0.0.0:9", true},
		{"[::]:9", "10.0.0.5:9", true},
		{"127.0.0.1:9", ":9", true},
		{"127.0.0.1:9", "localhost:9", true},
		{"127.0.0.1:9", "10.0.0.5:9", false},
		{"127.0.0.1:9", "127.0.0.1:8", false},
		{"127.0.0.1:9", "0.0.0.0:8", false},
		{"", "127.0.0.1:9", false},
		{"", "", false},
	} {
		if got := overlap(row.one, row.other); got != row.want || overlap(row.other, row.one) != got {
			t.Errorf("%q and %q: %v, want %v", row.one, row.other, got, row.want)
		}
	}
}
