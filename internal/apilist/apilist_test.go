package apilist

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestTheAPIIsAnnounced compares the exported names of each public package with api/.
func TestTheAPIIsAnnounced(t *testing.T) {
	lists, inside, err := All(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range inside {
		t.Errorf("%s: users cannot name a type of an internal package: give it an alias in a public package", line)
	}
	const advice = "run make generate and commit " + Folder + "; a removed or changed line needs a [CHANGE] entry in CHANGELOG.md"
	files, err := filepath.Glob(filepath.Join(root, Folder, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, there := lists[filepath.Base(file)]; !there {
			t.Errorf("%s lists a package that does not exist: %s", filepath.Base(file), advice)
		}
	}
	for name, want := range lists {
		text, err := os.ReadFile(filepath.Join(root, Folder, name))
		if err != nil {
			t.Errorf("%v: %s", err, advice)
			continue
		}
		if lines := changes(string(text), want); len(lines) > 0 {
			t.Errorf("%s:\n%s\n%s", name, strings.Join(lines, "\n"), advice)
		}
	}
}

// changes returns the lines that only one text has, marked with - or +.
func changes(was, is string) []string {
	before, after := strings.Split(was, "\n"), strings.Split(is, "\n")
	var lines []string
	for _, line := range before {
		if !slices.Contains(after, line) {
			lines = append(lines, "- "+line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return lines
}

// TestList checks that each exported name has a line, and no other name has one.
func TestList(t *testing.T) {
	const text = `package p

import "io"

const Most = 5
const least = 1

type Word string

const Yes Word = "yes"

var Err error

type Pair[K comparable, V any] struct {
	io.Reader
	Key    K
	hidden V
}

func (p *Pair[K, V]) Set(key K, value V) {}
func (p Pair[K, V]) Get() (K, V)         { return p.Key, p.hidden }
func (p Pair[K, V]) hide()               {}

type Store interface {
	Take(n int) (ok bool, err error)
	own()
}

type Number interface{ ~int | ~string }

type Other = Word

func Make(name string, more ...func(int) bool) *Store { return nil }
func lost()                                          {}
`
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	config := types.Config{Importer: importer.ForCompiler(files, "source", nil)}
	p, err := config.Check("p", files, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"const Most untyped int = 5",
		`const Yes Word = "yes"`,
		"func Make(string, ...func(int) bool) *Store",
		"method (*Pair[K comparable, V any]) Set(K, V)",
		"method (Pair[K comparable, V any]) Get() (K, V)",
		"method (Pair[K comparable, V any]) Read([]byte) (int, error)",
		"type Number interface",
		"type Number interface, constraint interface{~int | ~string}",
		"type Other = Word",
		"type Pair[K comparable, V any] struct",
		"type Pair[K comparable, V any] struct, Key K",
		"type Pair[K comparable, V any] struct, embedded io.Reader",
		"type Store interface",
		"type Store interface, Take(int) (bool, error)",
		"type Store interface, unexported methods",
		"type Word string",
		"var Err error",
	}
	if got := write(p).lines; !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestChanges checks that removed and added lines are found, and unchanged lines are not.
func TestChanges(t *testing.T) {
	if got := strings.Join(changes("a\nb\n", "b\nc\n"), " "); got != "- a + c" {
		t.Errorf("got %q", got)
	}
}
