package reference

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Names of the differences that docs/envoy.md lists. The comparison excuses quotaOverall and
// quotaReset in answers, and stopNearLimit in counters. The random requests avoid the other ones.
const (
	quotaOverall    = "quota-overall"
	quotaReset      = "quota-reset"
	stopSameCounter = "stop-same-counter"
	stopNearLimit   = "stop-near-limit"
	keyCollision    = "key-collision"
	unitUnknown     = "sent-unit-unknown"
	multiplier      = "sent-unit-multiplier"
	errorCodes      = "error-codes"
)

// TestListedDifferences compares the names with the table of docs/envoy.md.
func TestListedDifferences(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "envoy.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Differences in decisions\n")
	var listed []string
	for line := range strings.Lines(section) {
		if name, found := strings.CutPrefix(line, "| `"); found {
			name, _, _ = strings.Cut(name, "`")
			listed = append(listed, name)
		}
	}
	want := []string{quotaOverall, quotaReset, stopSameCounter, stopNearLimit, keyCollision, unitUnknown, multiplier, errorCodes}
	if !slices.Equal(listed, want) {
		t.Errorf("docs/envoy.md lists %q, want %q", listed, want)
	}
}
