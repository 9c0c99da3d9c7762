package reload

import (
	"testing"
	"time"
)

// A short run reloads, decides, and finds nothing that fails.
func TestMeasure(t *testing.T) {
	r, err := Measure(t.Context(), Effort{Rounds: 2, Slice: 50 * time.Millisecond, Rules: 100})
	if err != nil {
		t.Fatal(err)
	}
	if r.Reloads < 2 || r.Decisions < 100 || len(r.Rows) != 6 || len(r.Ratios) != 1 {
		t.Errorf("%d reloads, %d decisions, %d rows: %+v", r.Reloads, r.Decisions, len(r.Rows), r.Ratios)
	}
}
