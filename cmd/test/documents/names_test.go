package documents

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testName matches the name of a test, and not a word like Testing.
var testName = regexp.MustCompile(`\bTest[A-Z]\w+`)

// TestNamedTestsAreThere checks that the tests that documents name exist.
func TestNamedTestsAreThere(t *testing.T) {
	named := map[string]string{}
	for _, text := range filesOf(t, filepath.Join("..", "..", "..", "docs"), ".md") {
		for _, name := range testName.FindAllString(text, -1) {
			named[name] = ""
		}
	}
	if len(named) == 0 {
		t.Fatal("the documents name no test")
	}
	for file, text := range filesOf(t, filepath.Join("..", "..", ".."), "_test.go") {
		for name := range named {
			if strings.Contains(text, "\nfunc "+name+"(") {
				named[name] = file
			}
		}
	}
	for name, file := range named {
		if file == "" {
			t.Errorf("docs name %s, but no test file has it", name)
		}
	}
}

// filesOf reads the files below a folder whose names have the suffix end.
func filesOf(t *testing.T, folder, end string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, end) {
			return err
		}
		text, err := os.ReadFile(path)
		texts[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}
