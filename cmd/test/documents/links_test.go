package documents

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// document has the links and the anchors of a Markdown file.
type document struct {
	anchors []string
	links   []placed // Links without a scheme.
}

// placed is a link, and its line.
type placed struct {
	line int
	to   string
}

var (
	heading    = regexp.MustCompile(`^#{1,6} +(.*?)#*$`)
	linkForm   = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	linkScheme = regexp.MustCompile(`^[a-z][a-z+.-]*:`)
	codeSpan   = regexp.MustCompile("`[^`]*`")
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// readDocument finds headings and links outside of fenced blocks and of code. Anchors have the form that GitHub gives to headings.
func readDocument(text string) document {
	var d document
	fence, count := "", map[string]int{}
	for n, line := range strings.Split(text, "\n") {
		mark := strings.TrimLeft(line, " ")
		switch {
		case fence != "":
			if strings.HasPrefix(mark, fence) {
				fence = ""
			}
			continue
		case strings.HasPrefix(mark, "```"):
			fence = "```"
			continue
		}
		if found := heading.FindStringSubmatch(line); found != nil {
			anchor := anchorOf(found[1])
			if before := count[anchor]; before > 0 {
				d.anchors = append(d.anchors, fmt.Sprintf("%s-%d", anchor, before))
			} else {
				d.anchors = append(d.anchors, anchor)
			}
			count[anchor]++
		}
		for _, found := range linkForm.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, "code"), -1) {
			if !linkScheme.MatchString(found[1]) {
				d.links = append(d.links, placed{n + 1, found[1]})
			}
		}
	}
	return d
}

// anchorOf returns the anchor of a heading.
func anchorOf(heading string) string {
	heading = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading, "$1")
	return strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
}

// markdownFiles returns all Markdown files of the repository that are not fetched or generated.
func markdownFiles(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"node_modules", "testdata", "bin"}, entry.Name())):
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// brokenLinks returns the links that lead to no file, or to no heading of a Markdown file.
func brokenLinks(t *testing.T, root string) (broken []string, followed int) {
	t.Helper()
	documents := map[string]document{}
	read := func(path string) (document, error) {
		if d, known := documents[path]; known {
			return d, nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			documents[path] = readDocument(string(text))
		}
		return documents[path], err
	}
	for _, file := range markdownFiles(t, root) {
		d, err := read(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range d.links {
			followed++
			path, anchor, _ := strings.Cut(link.to, "#")
			to := file
			if path != "" {
				to = filepath.Join(filepath.Dir(file), filepath.FromSlash(path))
			}
			if _, err := os.Stat(to); err != nil {
				broken = append(broken, fmt.Sprintf("%s:%d: %s: no such file", file, link.line, link.to))
				continue
			}
			if anchor == "" || !strings.HasSuffix(to, ".md") {
				continue
			}
			if target, err := read(to); err != nil || !slices.Contains(target.anchors, anchor) {
				broken = append(broken, fmt.Sprintf("%s:%d: %s: no heading has this anchor", file, link.line, link.to))
			}
		}
	}
	return broken, followed
}

// TestLinks follows each link of each Markdown file of the repository, and each anchor.
func TestLinks(t *testing.T) {
	broken, followed := brokenLinks(t, filepath.Join("..", "..", ".."))
	for _, link := range broken {
		t.Error(link)
	}
	if followed < 500 {
		t.Errorf("only %d links were found: check the form that finds them", followed)
	}
}

// anchoredURL matches a URL of a page, as alerts have it.
var anchoredURL = regexp.MustCompile(`blob/main/(docs/[\w./-]+\.md)#([\w-]+)`)

// TestLinksOfAlerts follows the links of the alerts, which lead to the pages on GitHub.
func TestLinksOfAlerts(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	followed := 0
	for file, text := range filesOf(t, filepath.Join(root, "docs", "deploy"), ".yaml") {
		for _, found := range anchoredURL.FindAllStringSubmatch(text, -1) {
			followed++
			page, err := os.ReadFile(filepath.Join(root, found[1]))
			if err != nil || !slices.Contains(readDocument(string(page)).anchors, found[2]) {
				t.Errorf("%s: %s#%s: no heading has this anchor (%v)", file, found[1], found[2], err)
			}
		}
	}
	if followed < 5 {
		t.Errorf("only %d links were found: check the form that finds them", followed)
	}
}

// TestLinksAreFound: the test of links finds a missing file, a missing anchor and an anchor of the same page.
func TestLinksAreFound(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"a.md": "# A page\n[b](b.md) [right](b.md#the-lease-of-cost) [again](b.md#twice-1) [missing](b.md#none)\n[c](c.md) [own](#a-page) [wrong](#b)\n`[x](y.md)`\n",
		"b.md": "# B\n## The `lease` of *cost*\n## Twice\n## Twice\n```\n# none\n[d](d.md)\n```\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	broken, followed := brokenLinks(t, folder)
	want := []string{":2: b.md#none: no heading has this anchor", ":3: c.md: no such file", ":3: #b: no heading has this anchor"}
	for i := range broken {
		broken[i] = strings.TrimPrefix(broken[i], filepath.Join(folder, "a.md"))
	}
	if !slices.Equal(broken, want) || followed != 7 {
		t.Errorf("of %d links are broken: %q, want %q", followed, broken, want)
	}
}
