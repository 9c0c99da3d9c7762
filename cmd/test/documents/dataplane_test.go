package documents

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard/report"
)

// TestReasonsOfTheDataPlane checks that the table of reasons has each reason against the fast
// path once, in the order of report.Paths.
func TestReasonsOfTheDataPlane(t *testing.T) {
	var want, got []string
	for _, p := range report.Paths() {
		if p != report.PathFast {
			want = append(want, p.String())
		}
	}
	for _, row := range tableOf(t, filepath.Join("..", "..", "..", "docs", "data-plane.md"), "reasons") {
		got = append(got, strings.Trim(cells(row)[0], "`"))
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/data-plane.md has the reasons %q, want %q", got, want)
	}
}
