package documents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// storesPage is the document with the numbers and commands that these tests check.
var storesPage = filepath.Join("..", "..", "..", "docs", "stores.md")

// block returns the lines of the page's only fenced block of a kind.
func block(t *testing.T, kind string) []string {
	t.Helper()
	var lines []string
	found, inside := 0, false
	for _, row := range page(t) {
		switch {
		case row == "```"+kind:
			found, inside = found+1, true
		case row == "```":
			inside = false
		case inside:
			lines = append(lines, row)
		}
	}
	if found != 1 || len(lines) == 0 {
		t.Fatalf("%s has %d blocks of kind %s with %d lines: want one", storesPage, found, kind, len(lines))
	}
	return lines
}

// table returns the rows, without the head, of the table after a marker
// `<!-- figures: name -->`.
func table(t *testing.T, name string) []string {
	t.Helper()
	return tableOf(t, storesPage, name)
}

// tableOf is table for any document.
func tableOf(t *testing.T, document, name string) []string {
	t.Helper()
	lines := linesOf(t, document)
	from := slices.Index(lines, "<!-- figures: "+name+" -->")
	if from < 0 {
		t.Fatalf("%s has no marker <!-- figures: %s -->", document, name)
	}
	var rows []string
	for _, line := range lines[from+1:] {
		switch {
		case strings.HasPrefix(line, "|"):
			rows = append(rows, line)
		case len(rows) > 0:
			return rows[min(2, len(rows)):]
		}
	}
	return rows[min(2, len(rows)):]
}

// cells splits a row of a table.
func cells(row string) []string {
	parts := strings.Split(strings.Trim(row, "|"), "|")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// sameTable compares the page's table with the computed rows.
func sameTable(t *testing.T, name string, want []string) {
	t.Helper()
	if got := table(t, name); !slices.Equal(got, want) {
		t.Errorf("the table %s of %s is\n%s\nand the computed table is\n%s", name, storesPage,
			strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func page(t *testing.T) []string {
	t.Helper()
	return linesOf(t, storesPage)
}

func linesOf(t *testing.T, document string) []string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}
