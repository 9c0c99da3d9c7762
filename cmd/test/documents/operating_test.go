package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sources returns the text of all Go files except tests.
func sources(t *testing.T, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		for path, text := range filesOf(t, filepath.Join("..", "..", "..", filepath.FromSlash(folder)), ".go") {
			if !strings.HasSuffix(path, "_test.go") {
				all.WriteString(text)
			}
		}
	}
	return all.String()
}

// TestMetricsAreThere checks that every metric that the documents name in full exists.
func TestMetricsAreThere(t *testing.T) {
	known := map[string]bool{}
	for _, found := range regexp.MustCompile(`(desc|counter)\("([a-z_]+)"`).FindAllStringSubmatch(sources(t, "guard/report/prom"), -1) {
		name := "headgate_" + found[2]
		if found[1] == "counter" {
			name = "headgate_store_" + found[2]
		}
		known[name] = true
	}
	pacers, err := os.ReadFile(filepath.Join("..", "..", "..", "guard", "report", "prom", "pacers.go")) // Pacers' metrics have their own prefix.
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`desc\("([a-z_]+)"`).FindAllStringSubmatch(string(pacers), -1) {
		delete(known, "headgate_"+found[1])
		known["headgate_pace_"+found[1]] = true
	}
	named := 0
	for path, text := range filesOf(t, filepath.Join("..", "..", "..", "docs"), ".md") {
		for _, found := range regexp.MustCompile(`\b(headgate_[a-z_]+[a-z])\b(:?)`).FindAllStringSubmatch(text, -1) {
			name := found[1]
			if found[2] == ":" { // It is a field of INFO.
				continue
			}
			named++
			if !known[strings.TrimSuffix(name, "_bucket")] { // a series of a histogram
				t.Errorf("%s names the metric %s, which does not exist", path, name)
			}
		}
	}
	if named < 30 || len(known) < 30 {
		t.Errorf("%d names of %d metrics were found: check the pattern that finds them", named, len(known))
	}
}

// TestLogLinesAreThere checks that the code contains the log lines and the error texts that
// docs/operating.md explains.
func TestLogLinesAreThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(string(text), "### The lines of stores\n")
	lines, _, _ = strings.Cut(lines, "The values of `error`")
	all := sources(t, "config", "internal/config", "internal/store", "store", "guard/report", "cmd/internal/app", "cmd/internal/rules", "cmd/internal/server")
	explained := 0
	for row := range strings.Lines(lines) {
		for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(strings.Split(row+"||", "|")[1], -1) {
			explained++
			if !strings.Contains(all, `"`+found[1]+`"`) {
				t.Errorf("no code logs %q", found[1])
			}
		}
	}
	if explained < 5 {
		t.Errorf("%d lines were found, want at least 5", explained)
	}
}
