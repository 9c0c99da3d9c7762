package documents

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/ruletest"
)

// example is one configuration of a document with its requests.
type example struct {
	place  string // The form is file:line.
	config string
	tests  []ruletest.Test
	lines  int // of the requests
}

// readExamples returns the examples of a document: each yaml block with the requests block after
// it.
func readExamples(t *testing.T, file string) []example {
	t.Helper()
	var all []example
	kind, block := "", ""
	for n, row := range linesOf(t, file) {
		place := fmt.Sprintf("%s:%d", file, n+1)
		switch {
		case kind == "" && strings.HasPrefix(row, "```"):
			if kind, block = strings.TrimPrefix(row, "```"), ""; kind == "" {
				kind = "text"
			}
			if kind == "yaml" {
				all = append(all, example{place: place})
			}
		case row == "```" && kind == "requests":
			if len(all) == 0 {
				t.Fatalf("%s: requests without a configuration before them", place)
			}
			all[len(all)-1].add(t, block)
			kind = ""
		case row == "```":
			kind = ""
		case kind == "yaml":
			all[len(all)-1].config += row + "\n"
		default:
			block += row + "\n"
		}
	}
	return all
}

// add adds a block of requests.
func (e *example) add(t *testing.T, block string) {
	t.Helper()
	tests, err := ruletest.Parse(e.place, []byte(block))
	if err != nil {
		t.Fatal(err)
	}
	e.tests = append(e.tests, tests...)
	for i := range tests {
		e.lines += tests[i].Lines()
	}
}
