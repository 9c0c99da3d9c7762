package apilist

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackagesExplainThemselves checks that each public package has a package comment, and an
// Example that go test runs and compares.
func TestPackagesExplainThemselves(t *testing.T) {
	packages, err := publicPackages(t.Context(), root)
	if err != nil || len(packages) < 20 {
		t.Fatalf("%d packages, %v", len(packages), err)
	}
	for _, path := range packages {
		commented, examples := explained(t, filepath.Join(root, strings.TrimPrefix(strings.TrimPrefix(path, module), "/")))
		if !commented {
			t.Errorf("%s has no package comment", path)
		}
		if examples == 0 {
			t.Errorf("%s has no Example with an output", path)
		}
	}
}

// explained reports whether the folder's package has a comment, and counts its Examples with
// an output.
func explained(t *testing.T, folder string) (commented bool, examples int) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if filepath.Ext(f.Name()) != ".go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, f.Name()), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(f.Name(), "_test.go") {
			commented = commented || file.Doc != nil
			continue
		}
		examples += outputs(file)
	}
	return commented, examples
}

func outputs(file *ast.File) (n int) {
	for _, e := range doc.Examples(file) {
		if e.Output != "" || e.EmptyOutput {
			n++
		}
	}
	return n
}
