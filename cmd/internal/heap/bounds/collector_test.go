package bounds

import (
	"testing"
)

func TestCollectorPercent(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		what        string
		live, table int64
		percent     int
	}{
		{"before the first collection", 0, 0, maxPercent},
		{"a small heap", 8 * mib, 0, 400},
		{"as large as the least garbage", 32 * mib, 0, 100},
		{"a large heap has Go's default", 4096 * mib, 0, 100},
		{"a table of prefetched units", 70 * mib, 64 * mib, 45},
		{"a large table, and little else", 256 * mib, 256 * mib, 12},
		{"a large table, and as much beside it", 512 * mib, 256 * mib, 50},
		{"a table of 64 GiB", 64 << 30, 64 << 30, minPercent},
	} {
		if got := gcPercent(c.live, c.table); got != c.percent {
			t.Errorf("%s: %d percent, want %d", c.what, got, c.percent)
		}
	}
}
