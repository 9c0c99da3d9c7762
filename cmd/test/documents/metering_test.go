package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/meter"
)

var meteringPage = filepath.Join("..", "..", "..", "docs", "metering.md")

// TestMeteringLines makes the requests of the first example, and compares the lines with those of the page.
func TestMeteringLines(t *testing.T) {
	e := readExamples(t, meteringPage)[0]
	folder := t.TempDir()
	lines, err := meter.NewLines(meter.LinesConfig{Folder: folder, Instance: "eu-1"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := meter.Open(meter.Config{Instance: "eu-1", Folder: t.TempDir(), Outputs: []meter.Output{lines}})
	if err != nil {
		t.Fatal(err)
	}
	e.run(t, newIdentityFiles(t), func(c *guard.Config) { c.Meter = m })
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, want := writtenLines(t, folder), pageLines(t)
	if !slices.Equal(got, want) {
		t.Errorf("the lines are\n%s\nand %s has\n%s", strings.Join(got, "\n"), meteringPage, strings.Join(want, "\n"))
	}
}

// variable is what differs between two runs: ids and times.
var variable = regexp.MustCompile(`"id":"eu-1/\d{8}T\d{6}Z-[0-9a-f]{16}/\d+","time":"[0-9T:.-]+Z","minute":"[0-9T:-]+:00Z"`)

func writtenLines(t *testing.T, folder string) []string {
	t.Helper()
	var all []string
	for _, text := range filesOf(t, folder, ".jsonl") {
		all = append(all, normalized(strings.Split(strings.TrimSpace(text), "\n"))...)
	}
	slices.Sort(all)
	return all
}

func pageLines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(meteringPage)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```json\n")
	block, _, _ := strings.Cut(rest, "\n```")
	return normalized(strings.Split(block, "\n"))
}

func normalized(lines []string) (all []string) {
	for _, line := range lines {
		all = append(all, variable.ReplaceAllString(line, "VARIABLE"))
	}
	return all
}
