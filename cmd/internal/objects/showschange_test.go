package objects

import (
	"testing"
)

// TestShowsChange: an instance sees an object at some time after a write.
func TestShowsChange(t *testing.T) {
	for _, c := range []struct {
		what                   string
		present, read, written int64
		want                   bool
	}{
		{"made, and not seen", 0, 0, 5, false},
		{"made, and seen", 5, 0, 5, true},
		{"made, and changed by another writer", 7, 0, 5, true},
		{"changed, and seen as before", 5, 5, 6, false},
		{"changed, and seen", 6, 5, 6, true},
		{"deleted, and seen as before", 5, 5, 0, false},
		{"deleted, and seen as earlier", 4, 5, 0, false},
		{"deleted, and seen", 0, 5, 0, true},
		{"deleted, and made again by another writer", 8, 5, 0, true},
	} {
		if got := ShowsChange(c.present, c.read, c.written); got != c.want {
			t.Errorf("%s: ShowsChange is %t, want %t", c.what, got, c.want)
		}
	}
}
