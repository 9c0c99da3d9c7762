package prose

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Fault is a phrase that texts must not have.
type Fault struct {
	File    string
	Line    int // The first line of the paragraph.
	Pattern string
	Phrase  string
	Instead string
}

// String formats the fault like a compiler's error, with what to write instead.
func (f Fault) String() string {
	return fmt.Sprintf("%s:%d: %s: %q: %s", f.File, f.Line, f.Pattern, f.Phrase, f.Instead)
}

// phrasesFile is not checked, because it has the phrases as examples.
const phrasesFile = "internal/prose/patterns.go"

// Check reads the Go files and Markdown pages of a tree and returns the faults. It omits
// faults that an exception allows. An exception without a fault is an error.
func Check(tree fs.FS) ([]Fault, error) { return checkAll(tree, exceptions()) }

func checkAll(tree fs.FS, allowed []exception) ([]Fault, error) {
	c := checker{tree: tree, patterns: allPatterns(), allowed: allowed, used: map[exception]bool{}}
	var faults []Fault
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if err == nil && name != "." && passedOver(name) {
				err = fs.SkipDir
			}
			return err
		}
		found, err := c.file(name)
		faults = append(faults, found...)
		return err
	})
	for _, e := range allowed {
		if !c.used[e] {
			err = errors.Join(err, fmt.Errorf("the exception for %s is not needed: remove it", e.file))
		}
	}
	return faults, err
}

// passedOver reports whether a folder is not checked: test data, results and tools.
func passedOver(folder string) bool {
	base := path.Base(folder)
	return strings.HasPrefix(base, ".") || slices.Contains([]string{"testdata", "node_modules", "results", "bin"}, base)
}

// checker searches the files of a tree for patterns.
type checker struct {
	tree     fs.FS
	patterns []pattern
	allowed  []exception
	used     map[exception]bool
}

// file returns the faults of a Go or Markdown file. Other files have no faults.
func (c *checker) file(name string) ([]Fault, error) {
	kind := path.Ext(name)
	if kind != ".go" && kind != ".md" || name == phrasesFile {
		return nil, nil
	}
	source, err := fs.ReadFile(c.tree, name)
	if err != nil {
		return nil, err
	}
	texts := pageTexts(source)
	if kind == ".go" {
		if texts, err = goTexts(name, source); err != nil {
			return nil, err
		}
	}
	var faults []Fault
	for _, t := range texts {
		for i := range c.patterns {
			p := &c.patterns[i]
			phrase := p.find.FindString(t.text)
			if phrase == "" || c.allows(name, p.name, t.text) {
				continue
			}
			faults = append(faults, Fault{name, t.line, p.name, strings.TrimSpace(phrase), p.instead})
		}
	}
	return faults, nil
}

// allows reports whether an exception allows the pattern in this text.
func (c *checker) allows(name, pattern, text string) bool {
	i := slices.IndexFunc(c.allowed, func(e exception) bool {
		return e.file == name && e.pattern == pattern && strings.Contains(text, e.text)
	})
	if i < 0 {
		return false
	}
	c.used[c.allowed[i]] = true
	return true
}
