package ctl

import (
	"testing"
	"time"

	"github.com/headgate/headgate/internal/admin"
)

// TestWindowOfACarriedCount: the window says that units can be from before it.
func TestWindowOfACarriedCount(t *testing.T) {
	start := time.Date(2026, time.November, 29, 0, 0, 0, 0, time.UTC)
	end := start.AddDate(0, 1, 0)
	const text = "2026-11-29T00:00:00Z to 2026-12-29T00:00:00Z"
	for want, l := range map[string]admin.LimitUsage{
		"-":  {},
		text: {Start: &start, End: &end},
		text + " (may have units from before: the calendar has changed)": {Start: &start, End: &end, Carried: true},
	} {
		if got := window(&l); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
