package config

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docsPages are the pages of the configuration: docs/configuration.md, and a page for each large section.
func docsPages(t *testing.T) []string {
	t.Helper()
	sections, err := filepath.Glob("../../docs/reference/*.md")
	if err != nil || len(sections) < 5 {
		t.Fatalf("found %d pages in docs/reference (error %v), want more", len(sections), err)
	}
	return append([]string{"../../docs/configuration.md"}, sections...)
}

// docsText is the text of all pages of the configuration.
func docsText(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, page := range docsPages(t) {
		all.Write(read(t, page))
	}
	return all.String()
}

// TestExamplesOfTheDocumentation parses every YAML block of the pages. It adds version and rules to
// examples that lack them.
func TestExamplesOfTheDocumentation(t *testing.T) {
	blocks := regexp.MustCompile("(?s)\n```yaml\n(.*?)```").FindAllStringSubmatch(docsText(t), -1)
	if len(blocks) < 20 {
		t.Fatalf("found %d YAML blocks in the pages, want more", len(blocks))
	}
	for _, block := range blocks {
		text := block[1]
		for _, needed := range []string{"version: 1\n", "rules:"} {
			if !strings.Contains(text, needed) {
				text = strings.TrimSuffix(needed, "rules:") + text
			}
		}
		if !strings.Contains(text, "rules:") {
			text += "rules: []\n"
		}
		if _, err := Parse("configuration.md", []byte(text)); err != nil {
			t.Errorf("%s\nis refused:\n%v", text, err)
		}
	}
}

// TestFieldsOfTheDocumentation checks that the pages name every field and every variable.
func TestFieldsOfTheDocumentation(t *testing.T) {
	page := docsText(t)
	for _, name := range variables() {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the pages of the configuration do not name %s", name)
		}
	}
	for _, file := range testdata(t, "faults") {
		for _, fields := range regexp.MustCompile(`use one of ([a-z_, ]+)\n`).FindAllStringSubmatch(string(read(t, strings.TrimSuffix(file, ".yaml")+".want")), -1) {
			for name := range strings.SplitSeq(fields[1], ", ") {
				if !strings.Contains(page, name) {
					t.Errorf("the pages of the configuration do not name %s", name)
				}
			}
		}
	}
}
