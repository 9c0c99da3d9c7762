package headgate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// goroutineMethods are the functions and methods that start a goroutine, or call a function in another one.
var goroutineMethods = []string{"AfterFunc", "Go", "Parallel", "RunParallel"}

// goroutinePackages start goroutines in the programs that import them.
var goroutinePackages = []string{"net/http", "net/http/httptest", "os/signal", "testing/synctest"}

// TestOneGoroutine checks the packages of ONE_GOROUTINE in the Makefile, which the race detector does not run. No file of these packages, of
// their tests and of the packages of this repository that they import starts a goroutine.
func TestOneGoroutine(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^ONE_GOROUTINE := (.*)$`).FindSubmatch(makefile)
	if declared == nil {
		t.Fatal("the Makefile has no ONE_GOROUTINE")
	}
	arguments := []string{"list", "-deps", "-test", "-f", `{{if and .Module (ne .Name "main")}}{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}{{end}}`}
	list := exec.CommandContext(t.Context(), "go", append(arguments, strings.Fields(string(declared[1]))...)...)
	list.Stderr = os.Stderr
	output, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files := 0
	for file := range strings.FieldsSeq(string(output)) {
		files++
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, start := range startsOf(t, file, source) {
			t.Errorf("%s: take the packages that link this file out of ONE_GOROUTINE in the Makefile, or do without", start)
		}
	}
	if files < 100 {
		t.Fatalf("%d files were read, want at least 100", files)
	}
}

// startsOf returns what starts a goroutine in the given source.
func startsOf(t *testing.T, name string, source []byte) []string {
	t.Helper()
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	report := func(n ast.Node, what string) { found = append(found, set.Position(n.Pos()).String()+": "+what) }
	ast.Inspect(syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n, "a go statement")
		case *ast.SelectorExpr:
			if slices.Contains(goroutineMethods, n.Sel.Name) {
				report(n, n.Sel.Name)
			}
		case *ast.ImportSpec:
			if imported, err := strconv.Unquote(n.Path.Value); err == nil && slices.Contains(goroutinePackages, imported) {
				report(n, "imports "+imported)
			}
		}
		return true
	})
	return found
}

// TestOneGoroutineCatches checks that each way to start a goroutine is found.
func TestOneGoroutineCatches(t *testing.T) {
	for body, want := range map[string]int{
		"func f() { f() }":                          0,
		"func f() { go f() }":                       1,
		"func f(g *sync.WaitGroup) { g.Go(f) }":     1,
		"func f() { time.AfterFunc(1, f) }":         1,
		"func f(t *testing.T) { t.Parallel() }":     1,
		"import \"net/http/httptest\"\nfunc f() {}": 1,
	} {
		if got := startsOf(t, "a.go", []byte("package a\n"+body)); len(got) != want {
			t.Errorf("%s: %q, want %d", body, got, want)
		}
	}
}
