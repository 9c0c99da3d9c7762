package objects

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/source/http"
	"github.com/headgate/headgate/internal/config/source"
)

// TestExamplesOfTheDocument: the file and the documents of docs/sources.md fit each other, and the documents have the same objects.
func TestExamplesOfTheDocument(t *testing.T) {
	page, err := os.ReadFile("../../../docs/sources.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)\n```(?:yaml|json)\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 3 {
		t.Fatalf("found %d blocks, want the file and two documents", len(blocks))
	}
	for _, block := range blocks[1:] {
		all, err := http.Parse(block[1])
		if err != nil {
			t.Fatalf("%s: %v", block[1], err)
		}
		table := newTable(t, accept)
		next, err := table.Reload(fromFile(t, string(blocks[0][1])))
		if err != nil {
			t.Fatal(err)
		}
		table.Reloaded(next)
		table.Apply(t.Context(), time.Unix(0, 0), source.Change{All: true, Objects: all})
		in := table.Objects()
		if held := table.Held(); len(held) != 0 || in.Len(source.Rule) != 1 || in.Len(source.Plan) != 2 || in.Len(source.Customer) != 1 {
			t.Errorf("%s: held back are %+v", block[1], held)
		}
	}
}
