package documents

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/ruletest"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

// documentsTable maps documents to their minimum number of requests.
var documentsTable = map[string]int{
	"reference/patterns.md": 10, "rules.md": 60, "cloud-armor.md": 40, "quotas.md": 25, "metering.md": 4, "configuration.md": 5,
	"recipes.md": 20, "tokens.md": 5,
	usersTable: 40,
}

// usersTable has what users of other limiters asked for and could not say, as configurations with requests and their status.
const usersTable = "../cmd/test/documents/testdata/users.md"

func TestDocuments(t *testing.T) {
	files := newIdentityFiles(t)
	for name, least := range documentsTable {
		t.Run(name, func(t *testing.T) {
			made := 0
			for _, e := range readExamples(t, filepath.Join("..", "..", "..", "docs", name)) {
				if len(e.tests) > 0 || name != "configuration.md" { // internal/config reads the examples of that page.
					made += e.lines
					t.Run(filepath.Base(e.place), func(t *testing.T) { e.run(t, files, nil) })
				}
			}
			if made < least {
				t.Errorf("%d lines of requests were found, want at least %d: check that the blocks are marked requests", made, least)
			}
		})
	}
}

// run makes the requests of an example one after another.
func (e *example) run(t *testing.T, files *identityFiles, adapt func(*guard.Config)) {
	t.Helper()
	text := e.config
	if !strings.HasPrefix(text, "version:") {
		text = "version: 1\n" + text
	}
	c, err := config.Parse(e.place, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c.MaxMemory = 4 << 20
	files.use(&c.Identity)
	runner := ruletest.Runner{Config: c, Fill: func(value string) string { return files.fill(t, value) }, Adapt: adapt}
	for i := range e.tests {
		differences, _, err := runner.Run(t.Context(), &e.tests[i])
		if err != nil {
			t.Errorf("%s: the requests below: %v", e.place, err)
		}
		for _, d := range differences {
			t.Errorf("%s: line %d of the requests below: %s", e.place, d.Line, d.Text)
		}
	}
}
