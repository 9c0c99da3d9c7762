package proxy

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The differences between the planes, by their names in differencesFile. No test ignores another
// difference.
const (
	emptyFraming = "Framing of an empty response of unknown length"
	brokenPart   = "Part of a broken response that the client receives"
	headerBound  = "Bound of a header behind another request"
	attempts     = "Attempts for a request whose connection the service closes"
	disconnect   = "Time until a disconnected client is noticed" // The tests wait for it.
	trailerBound = "HTTP/2: bound of the names in a field `Trailer`"
	noWindow     = "HTTP/2: answer of 400 or 431 to a client that gives no window"
	lateTrailers = "HTTP/2: trailers that arrive after the end of their stream"
)

// differencesFile has the list of differences, in the table of this section.
const (
	differencesFile    = "../../../../docs/data-plane.md"
	differencesSection = "## Differences between fast and standard"
)

// isEmptyFraming reports whether a response is of emptyFraming, and whether the field, if any,
// is a part of this framing.
func (m *wireMessage) isEmptyFraming(field string) bool {
	return m.isResponse() && m.whole && m.body == "" && len(m.trailer) == 0 && (m.length == "0" || m.length == "chunked") &&
		(field == "" || field == "content-length: 0" || field == "transfer-encoding: chunked")
}

// isBrokenPart reports whether a message is of brokenPart.
func (m *wireMessage) isBrokenPart() bool { return m.isResponse() && m.fault == "" && !m.whole }

// isHeaderBound reports whether the end of got differs from want by headerBound: only got
// refuses the header of a further request.
func isHeaderBound(want, got *transcript) bool {
	last := len(got.answers) - 1
	return last > 0 && len(want.answers) > last && strings.HasPrefix(got.answers[last].first, "HTTP/1.1 431 ") &&
		!strings.HasPrefix(want.answers[last].first, "HTTP/1.1 431 ")
}

// isAttempt reports whether a request at the upstream repeats the one before: the recorder
// closes the connection.
func isAttempt(before, m *wireMessage) bool {
	return strings.Contains(m.word(1), "/gone") && before.first == m.first && slices.Equal(before.fields, m.fields)
}

// before returns the facts about the first n answers, without those about the whole
// connection.
func (t *transcript) before(n int, other *transcript) *transcript {
	upstream, verdicts := min(len(t.upstream), len(other.upstream)), min(len(t.verdicts), len(other.verdicts))
	return &transcript{answers: t.answers[:n], upstream: t.upstream[:upstream], verdicts: t.verdicts[:verdicts]}
}

func (m *wireMessage) isResponse() bool { return strings.HasPrefix(m.first, "HTTP/") }

// TestDifferencesAreDocumented checks that the documented list has the differences that the
// tests ignore, and no others.
func TestDifferencesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(differencesFile)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), differencesSection+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatalf("%s has no section %q", differencesFile, differencesSection)
	}
	var documented []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && !strings.HasPrefix(cells[1], "-") && strings.TrimSpace(cells[1]) != "Difference" {
			documented = append(documented, strings.TrimSpace(cells[1]))
		}
	}
	if want := []string{emptyFraming, brokenPart, headerBound, attempts, disconnect, trailerBound, noWindow, lateTrailers}; !slices.Equal(documented, want) {
		t.Errorf("%s lists the differences %q, the tests ignore %q", differencesFile, documented, want)
	}
}
