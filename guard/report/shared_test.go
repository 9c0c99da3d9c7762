package report_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/headgate/headgate/guard/report"
)

// TestFailure: the text of an error may come from a hostile server.
func TestFailure(t *testing.T) {
	at := time.Unix(9, 0)
	if got := report.NewFailure(at, nil); got != (report.Failure{}) {
		t.Errorf("without an error: got %v", got)
	}
	for text, want := range map[string]string{
		"dial tcp 10.0.0.5:6379: connection refused": "dial tcp 10.0.0.5:6379: connection refused",
		"ERR \x1b[2J\x00\u202e":                      `ERR \x1b[2J\x00\u202e`,
		strings.Repeat("a", 1<<20):                   strings.Repeat("a", 200) + "...",
		strings.Repeat("ä", 200):                     strings.Repeat("ä", 100) + "...",
	} {
		if got := report.NewFailure(at, errors.New(text)); got.Text != want || got.At != at {
			t.Errorf("%.50q: got %q, want %q", text, got.Text, want)
		}
	}
	for _, text := range []string{strings.Repeat("\x1b", 1<<20), strings.Repeat("\xff", 200), strings.Repeat("\U000E0001", 90)} {
		if got := report.NewFailure(at, errors.New(text)).Text; len(got) > 300 || !utf8.ValidString(got) || strings.ContainsRune(got, '\x1b') {
			t.Errorf("%.20q: got %d bytes: %q", text, len(got), got)
		}
	}
}
