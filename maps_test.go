package headgate_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// This file checks that doc.go and docs/architecture.md name what exists, in both directions: each folder and file that they name
// exists (see also TestLayoutMaps), and each package, each public package and each module is named.

// unmapped are folders whose packages need no names of their own: programs of benchmarks, programs to copy, and generated types.
var unmapped = []string{"cmd/test/bench", "docs/examples", "internal/proto/headgate", "internal/dev/tools"}

// unreleased are the modules of the workspace that no release has.
var unreleased = []string{"cmd/test", "docs/examples"}

// maps are the texts of both maps.
type maps struct{ doc, architecture string }

func readMaps(t *testing.T) maps {
	t.Helper()
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	return maps{read("doc.go"), read("docs/architecture.md")}
}

// TestMapsNameEachPackage: each folder with a Go file is in one of the maps.
func TestMapsNameEachPackage(t *testing.T) {
	_, files := walk(t)
	for _, folder := range readMaps(t).unnamed(files) {
		t.Errorf("the package %s is in no map: name the folder %s/ in docs/architecture.md, with what it does", folder, folder)
	}
}

// TestMapsNameThePublicPackages: doc.go and the table of docs/architecture.md have the public packages, and no others.
func TestMapsNameThePublicPackages(t *testing.T) {
	_, files := walk(t)
	m := readMaps(t)
	public := publicPackages(files)
	if len(public) < 10 || len(public) > 24 {
		t.Errorf("there are %d public packages, want at most 24", len(public))
	}
	var inDoc []string
	for _, folder := range foldersInDoc(section(m.doc, "// # Packages", "// The others are not public")) {
		inDoc = append(inDoc, strings.TrimSuffix(folder, "/"))
	}
	sameNames(t, "doc.go, Packages", inDoc, public)
	sameNames(t, "docs/architecture.md, Public packages", firstCells(section(m.architecture, "### Public packages", "\n## ")), public)
}

// TestMapsNameTheModules: doc.go marks the folders that are modules, and the table of docs/architecture.md has the modules of a release.
func TestMapsNameTheModules(t *testing.T) {
	work, err := os.ReadFile("go.work")
	if err != nil {
		t.Fatal(err)
	}
	var modules, marked []string
	for _, found := range regexp.MustCompile(`(?m)^\t\./(\S+)$`).FindAllStringSubmatch(string(work), -1) {
		modules = append(modules, found[1])
	}
	m := readMaps(t)
	for _, found := range regexp.MustCompile(`(?m)^//\t(\S+)/ .*; a module$`).FindAllStringSubmatch(m.doc, -1) {
		marked = append(marked, found[1])
	}
	sameNames(t, "doc.go, the folders with the words \"a module\"", marked, modules)
	released := slices.DeleteFunc(slices.Clone(modules), func(folder string) bool { return slices.Contains(unreleased, folder) })
	sameNames(t, "docs/architecture.md, Modules", firstCells(section(m.architecture, "## Modules", "### Public packages")), released)
}

// TestMapsNameFilesThatExist checks the files that docs/architecture.md names, with a folder or in a row with their folder.
func TestMapsNameFilesThatExist(t *testing.T) {
	exists := func(file string) bool {
		_, err := os.Stat(filepath.FromSlash(file))
		return err == nil
	}
	missing, named := readMaps(t).missingFiles(exists)
	for _, file := range missing {
		t.Errorf("docs/architecture.md names the file %s, which does not exist: correct the map", file)
	}
	if named < 100 {
		t.Errorf("docs/architecture.md names only %d files: check the form that finds them", named)
	}
}

// unnamed returns the folders of Go files that neither map names, sorted.
func (m maps) unnamed(files []string) []string {
	named := map[string]bool{".": true}
	for _, folder := range slices.Concat(foldersInDoc(m.doc), foldersInMarkdown(m.architecture)) {
		named[strings.TrimSuffix(folder, "/")] = true
	}
	var found []string
	for _, file := range files {
		if folder := path.Dir(file); !named[folder] && !underAny(folder, unmapped...) {
			named[folder] = true
			found = append(found, folder)
		}
	}
	slices.Sort(found)
	return found
}

// publicPackages returns the folders of packages that a program may import, without the root.
func publicPackages(files []string) []string {
	var found []string
	for _, file := range files {
		folder := path.Dir(file)
		hidden := underAny(folder, "cmd", "docs") || slices.Contains(strings.Split(folder, "/"), "internal")
		if folder != "." && !hidden && !strings.HasSuffix(file, "_test.go") && !slices.Contains(found, folder) {
			found = append(found, folder)
		}
	}
	return found
}

var (
	filePath = regexp.MustCompile("`((?:[a-z][\\w.-]*/)+[\\w.-]+\\.(?:go|sql|golden))`")
	fileName = regexp.MustCompile("`([\\w.-]+\\.(?:go|sql))`")
)

// missingFiles returns the named files that do not exist, and the number of named files. A name without a folder is a file of a
// folder that its row names.
func (m maps) missingFiles(exists func(file string) bool) (missing []string, named int) {
	for line := range strings.Lines(m.architecture) {
		for _, found := range filePath.FindAllStringSubmatch(line, -1) {
			named++
			if !exists(found[1]) {
				missing = append(missing, found[1])
			}
		}
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		folders := append(firstGroups(backquoted, line), "")
		for _, name := range firstGroups(fileName, line) {
			named++
			if !slices.ContainsFunc(folders, func(folder string) bool { return exists(folder + name) }) {
				missing = append(missing, name+" in "+strings.Join(folders, " "))
			}
		}
	}
	return missing, named
}

// section returns the text from a heading to the next words, or to the end.
func section(text, from, to string) string {
	_, after, _ := strings.Cut(text, from)
	part, _, _ := strings.Cut(after, to)
	return part
}

// firstCells returns the folders in the first cells of the rows of a table.
func firstCells(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") {
			for _, folder := range firstGroups(backquoted, cells[0]) {
				found = append(found, strings.TrimSuffix(folder, "/"))
			}
		}
	}
	return found
}

// sameNames reports the names of got that want lacks, and the reverse.
func sameNames(t *testing.T, where string, got, want []string) {
	t.Helper()
	for _, problem := range differences(got, want) {
		t.Errorf("%s %s", where, problem)
	}
}

func differences(got, want []string) []string {
	var found []string
	for _, name := range want {
		if !slices.Contains(got, name) {
			found = append(found, fmt.Sprintf("lacks %s", name))
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) {
			found = append(found, fmt.Sprintf("has %s, which is none", name))
		}
	}
	return found
}

// TestMapsCatch: each check of the maps can fail.
func TestMapsCatch(t *testing.T) {
	m := maps{
		doc:          "//\tguard/      rules\n//\trule/jwt/   keys; a module\n",
		architecture: "| `store/` | `a.go`, `b.go` and `guard/c.go` |\n| `store/` | x |\n",
	}
	files := []string{"root.go", "guard/a.go", "guard/internal/wheel/b.go", "store/c_test.go", "cmd/test/bench/d.go", "rule/jwt/e.go"}
	if got := m.unnamed(files); !slices.Equal(got, []string{"guard/internal/wheel"}) {
		t.Errorf("without a name are %q", got)
	}
	if got := publicPackages(files); !slices.Equal(got, []string{"guard", "rule/jwt"}) {
		t.Errorf("public are %q", got)
	}
	missing, named := m.missingFiles(func(file string) bool { return file == "store/a.go" })
	if !slices.Equal(missing, []string{"guard/c.go", "b.go in store/ "}) || named != 3 {
		t.Errorf("of %d files are missing: %q", named, missing)
	}
	if got := differences(firstCells(m.architecture), []string{"store", "rule"}); !slices.Equal(got, []string{"lacks rule"}) {
		t.Errorf("the differences are %q", got)
	}
	if got := differences([]string{"store", "rule"}, []string{"store"}); !slices.Equal(got, []string{"has rule, which is none"}) {
		t.Errorf("the differences are %q", got)
	}
}
