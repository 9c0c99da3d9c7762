package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docsFolder is the folder of all pages.
var docsFolder = filepath.Join("..", "..", "..", "docs")

// pages returns the paths of all pages but the index. Decisions are a list of their own.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, folder := range []string{"", "reference", "evidence", filepath.Join("examples", "*")} {
		some, err := filepath.Glob(filepath.Join(docsFolder, folder, "*.md"))
		if err != nil || len(some) < 5 {
			t.Fatalf("docs/%s has %d pages, %v", folder, len(some), err)
		}
		found = append(found, some...)
	}
	return found
}

// nextStep matches line 3 of a page: the links to the index and to the next page.
var nextStep = regexp.MustCompile(`^\[All pages\]\(((?:\.\./)*README\.md)\) · next: \[[^\]]+\]\(([^)#]+)(?:#[^)]*)?\)( · \[[^\]]+\]\([^)]+\))*$`)

// TestIndex: docs/README.md or the page of the configuration lists every page, and every page leads back to the index and
// to a next page.
func TestIndex(t *testing.T) {
	index := strings.Join(linesOf(t, filepath.Join(docsFolder, "README.md")), "\n")
	sections := strings.Join(linesOf(t, filepath.Join(docsFolder, "configuration.md")), "\n")
	for _, page := range pages(t) {
		name, err := filepath.Rel(docsFolder, page)
		if err != nil {
			t.Fatal(err)
		}
		if name == "README.md" {
			continue
		}
		lines := linesOf(t, page)
		switch filepath.Dir(name) {
		case "reference":
			if !strings.Contains(sections, "]("+name+")") {
				t.Errorf("docs/configuration.md does not list %s", name)
			}
		case "evidence":
			if claims := filepath.Join(docsFolder, filepath.Base(name)); !strings.Contains(linesOf(t, claims)[2], "]("+name+")") {
				t.Errorf("line 3 of docs/%s does not lead to %s", filepath.Base(name), name)
			}
		default:
			if !strings.Contains(index, "]("+name+")") {
				t.Errorf("docs/README.md does not list %s", name)
			}
		}
		found := nextStep.FindStringSubmatch(lines[2])
		if !strings.HasPrefix(lines[0], "# ") || found == nil {
			t.Errorf("docs/%s must begin with its title, and have the links to all pages and to a next page on line 3", name)
			continue
		}
		for _, to := range found[1:3] {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), to)); err != nil {
				t.Errorf("docs/%s: %v", name, err)
			}
		}
	}
}

// mostWordsBeforeTask bounds the words between the title of a page and its first table, example or section.
const mostWordsBeforeTask = 130

// TestFirstScreen: a page comes to its task within its first screen, and names no test. Tests are on the page of evidence.
func TestFirstScreen(t *testing.T) {
	for _, page := range pages(t) {
		if filepath.Base(filepath.Dir(page)) == "evidence" {
			continue
		}
		words, begun := 0, false
		for n, line := range linesOf(t, page) {
			begun = begun || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "```") || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "## ")
			if !begun {
				words += len(strings.Fields(line))
			}
			if name := testName.FindString(line); name != "" {
				t.Errorf("%s:%d names %s: move the sentence to docs/evidence/", page, n+1, name)
			}
		}
		if words > mostWordsBeforeTask {
			t.Errorf("%s has %d words before its first table, example or section: begin with the task", page, words)
		}
	}
}

// TestFirstScreenOfTheReadme: the README begins with a picture that a command makes, and with the two commands that do all the set-up.
func TestFirstScreenOfTheReadme(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	lines := linesOf(t, filepath.Join(root, "README.md"))
	picture := regexp.MustCompile(`^!\[.+\]\((.+\.svg)\)$`).FindStringSubmatch(lines[2])
	if picture == nil {
		t.Fatalf("line 3 of README.md is no picture: %q", lines[2])
	}
	first := strings.Join(lines[:20], "\n")
	if !strings.Contains(first, "`./bin/headgate demo ") || !strings.Contains(first, "--svg "+picture[1]+"`") {
		t.Errorf("the first 20 lines of README.md do not have the command that draws %s", picture[1])
	}
	makefile := strings.Join(linesOf(t, filepath.Join(root, "Makefile")), "\n")
	for target, needs := range map[string]string{"run": "build", "test": "deps"} {
		if !strings.Contains(first, "\n    make "+target+" ") {
			t.Errorf("the first 20 lines of README.md do not have the command make %s", target)
		}
		if !strings.Contains(makefile, "\n"+target+": "+needs+" ##") {
			t.Errorf("make %s does not begin with %s, so it does not set up a fresh machine", target, needs)
		}
	}
}
