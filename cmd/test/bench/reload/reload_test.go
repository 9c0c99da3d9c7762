package reload

import (
	"testing"
	"time"
)

// TestMeasure checks a short run: it reloads, decides, and fails no decision.
func TestMeasure(t *testing.T) {
	r, err := Measure(t.Context(), Effort{Rounds: 2, Slice: 50 * time.Millisecond, Rules: 100})
	if err != nil {
		t.Fatal(err)
	}
	if r.Reloads < 2 || r.Decisions < 100 || len(r.Rows) != 6 || len(r.Ratios) != 1 {
		t.Errorf("got %d reloads, %d decisions, %d rows and the ratios %+v, want at least 2 and 100, 6 rows and 1 ratio",
			r.Reloads, r.Decisions, len(r.Rows), r.Ratios)
	}
}
