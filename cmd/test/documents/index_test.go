package documents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestIndex: docs/README.md lists every page, and every page leads back to it and to a next page.
func TestIndex(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "docs")
	index := strings.Join(linesOf(t, filepath.Join(folder, "README.md")), "\n")
	pages, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		if name == "README.md" {
			continue
		}
		if !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
		_, next, found := strings.Cut(linesOf(t, page)[2], "[All pages](README.md) · next: [")
		if _, to, _ := strings.Cut(next, "]("); !found || to == "" {
			t.Errorf("line 3 of docs/%s does not lead to all pages and to a next page", name)
		} else if _, err := os.Stat(filepath.Join(folder, strings.TrimSuffix(to, ")"))); err != nil {
			t.Errorf("docs/%s: %v", name, err)
		}
	}
}
