package importers_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/test/internal/fileproxy"
)

const (
	tree       = "../../.."
	seamGolden = "testdata/seam.golden"
)

// TestSeam compares the internal packages that published modules take from other modules with a golden file. A user may have an
// older release of the module that imports such a package, so that a change of the package is a change of an API. The daemon is
// not listed: no module requires it, so go install takes one release of all modules.
//
// UPDATE_SEAM=1 go test -run Seam . writes the file.
func TestSeam(t *testing.T) {
	modules, err := fileproxy.Modules(tree)
	if err != nil {
		t.Fatal(err)
	}
	users := map[string]map[string]bool{}
	for _, m := range modules {
		if !m.Published || m.Folder == "cmd" {
			continue
		}
		files, err := fileproxy.Files(t.Context(), tree, m)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file.Path(), ".go") || strings.HasSuffix(file.Path(), "_test.go") || strings.Contains(file.Path(), "testdata/") {
				continue
			}
			for _, imported := range imports(t, filepath.Join(tree, m.Folder, file.Path())) {
				if folder, is := inside(imported); is && owner(modules, folder) != m.Folder {
					if users[folder] == nil {
						users[folder] = map[string]bool{}
					}
					users[folder][m.Folder] = true
				}
			}
		}
	}
	var got strings.Builder
	for _, folder := range slices.Sorted(maps.Keys(users)) {
		fmt.Fprintf(&got, "%s: %s\n", folder, strings.Join(slices.Sorted(maps.Keys(users[folder])), " "))
	}
	if os.Getenv("UPDATE_SEAM") != "" {
		if err := os.WriteFile(seamGolden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(seamGolden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("published modules share the internal packages\n%swant\n%s: keep the list short. Where the change is meant, run "+
			"UPDATE_SEAM=1 go test -run Seam ./cmd/test/importers", got.String(), want)
	}
}

// inside returns the folder of an internal package of this tree.
func inside(imported string) (folder string, is bool) {
	folder, ours := strings.CutPrefix(imported, fileproxy.Root+"/")
	return folder, ours && slices.Contains(strings.Split(folder, "/"), "internal")
}

// owner returns the folder of the module that has a package.
func owner(modules []fileproxy.Module, folder string) string {
	best := "."
	for _, m := range modules {
		if (folder == m.Folder || strings.HasPrefix(folder, m.Folder+"/")) && (best == "." || len(m.Folder) > len(best)) {
			best = m.Folder
		}
	}
	return best
}

func imports(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	paths := make([]string, 0, len(parsed.Imports))
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, imported)
	}
	return paths
}

// lastRelease builds the modules of the newest tag with the root of this tree: a user of an adapter may upgrade the root alone.
// Before the first tag, the modules of this tree take the place of the release.
func (r *release) lastRelease(t *testing.T) {
	last := filepath.Join(t.TempDir(), "last")
	if tag := newestTag(t); tag != "" {
		unpack(t, tag, last)
	} else if err := fileproxy.Copy(t.Context(), r.root, last); err != nil {
		t.Fatal(err)
	}
	modules, err := fileproxy.Modules(last)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		if !m.Published || m.Folder == "." || m.Folder == "cmd" {
			continue
		}
		folder := filepath.Join(last, m.Folder)
		for _, other := range modules {
			target := filepath.Join(last, other.Folder)
			if other.Folder == "." {
				target = r.root
			}
			if other.Published && other.Folder != m.Folder {
				r.command(t, folder, "go", "mod", "edit", "-replace="+other.Path()+"="+target)
			}
		}
		r.command(t, folder, "go", "build", "./...")
	}
}

// newestTag returns the newest tag of the root module, or "" without one.
func newestTag(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", tree, "tag", "--list", "v*", "--sort=-v:refname").Output()
	if err != nil {
		t.Fatal(err)
	}
	newest, _, _ := strings.Cut(string(out), "\n")
	return newest
}

// unpack writes the files of a tag to a folder.
func unpack(t *testing.T, tag, to string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--depth", "1", "--branch", tag, "file://"+absolute(t, tree), to).CombinedOutput(); err != nil {
		t.Fatalf("git clone of %s: %v: %s", tag, err, out)
	}
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	full, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path.Clean(filepath.ToSlash(full))
}
