//go:build soak && !race

package fairshare

import (
	"testing"
	"time"
)

// TestSoakLastingNames is the table of docs/fair-share.md: an hour of the first attack, two
// minutes of the others. After an hour the names are lasting themselves.
func TestSoakLastingNames(t *testing.T) {
	for i, s := range sieges() {
		d := 2 * time.Minute
		if i == 0 {
			d = Lasting
		}
		t.Run(s.says, func(t *testing.T) { s.holds(t, d) })
	}
}
