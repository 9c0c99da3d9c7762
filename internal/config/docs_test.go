package config

import (
	"regexp"
	"strings"
	"testing"
)

const docs = "../../docs/configuration.md"

// TestExamplesOfTheDocumentation parses every YAML block of the page. It adds version and rules to
// examples that lack them.
func TestExamplesOfTheDocumentation(t *testing.T) {
	blocks := regexp.MustCompile("(?s)\n```yaml\n(.*?)```").FindAllStringSubmatch(string(read(t, docs)), -1)
	if len(blocks) < 4 {
		t.Fatalf("found %d YAML blocks in the page, want more", len(blocks))
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

// TestFieldsOfTheDocumentation checks that the page names every field and every variable.
func TestFieldsOfTheDocumentation(t *testing.T) {
	page := string(read(t, docs))
	for _, name := range variables() {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/configuration.md does not name %s", name)
		}
	}
	for _, file := range testdata(t, "faults") {
		for _, fields := range regexp.MustCompile(`use one of ([a-z_, ]+)\n`).FindAllStringSubmatch(string(read(t, strings.TrimSuffix(file, ".yaml")+".want")), -1) {
			for name := range strings.SplitSeq(fields[1], ", ") {
				if !strings.Contains(page, name) {
					t.Errorf("docs/configuration.md does not name %s", name)
				}
			}
		}
	}
}
