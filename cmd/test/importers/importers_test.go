// Package importers_test publishes the modules of this tree to a proxy in a folder, and checks what programs that import them get.
package importers_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/headgate/headgate/cmd/test/internal/fileproxy"
)

// version is a version that no release has.
const version = "v0.999.0"

// release is the modules of this tree, published.
type release struct {
	root    string // a copy of the tree, with the go.mod files of the release
	modules []fileproxy.Module
	env     []string
}

// TestImporters checks a release that is made from this tree.
func TestImporters(t *testing.T) {
	r := publish(t)
	t.Run("a program of the library has two modules", r.library)
	t.Run("no version of the program is raised", r.raisesNothing)
	t.Run("a program of a Redis store has two modules more", r.redis)
	t.Run("go install makes a binary with its version", r.install)
	t.Run("no published go.mod has a replace, and the root's has no require", r.requirements)
	t.Run("the last release builds with the root of this tree", r.lastRelease)
	for _, m := range r.modules {
		if m.Published {
			t.Run("go vet in "+m.Folder, func(t *testing.T) { r.command(t, filepath.Join(r.root, m.Folder), "go", "vet", "./...") })
		}
	}
}

func publish(t *testing.T) *release {
	t.Helper()
	r, proxy := &release{root: t.TempDir()}, t.TempDir()
	if err := fileproxy.Copy(t.Context(), "../../..", r.root); err != nil {
		t.Fatal(err)
	}
	env, remove, err := fileproxy.Environment(t.Context(), proxy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	if err := fileproxy.Publish(t.Context(), r.root, version, proxy, env); err != nil {
		t.Fatal(err)
	}
	modules, err := fileproxy.Modules(r.root)
	if err != nil {
		t.Fatal(err)
	}
	env = append(env, "CGO_ENABLED=0")
	r.modules, r.env = modules, env
	return r
}

func (r *release) command(t *testing.T, folder string, words ...string) string {
	t.Helper()
	return run(t, r.env, folder, words...)
}

// run returns the standard output of a command.
func run(t *testing.T, env []string, folder string, words ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), words[0], words[1:]...)
	c.Dir, c.Env = folder, env
	var failed strings.Builder
	c.Stderr = &failed
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(words, " "), err, out, failed.String())
	}
	return string(out)
}

// list makes a program with imports and requirements, and returns its modules, as in "path version".
func (r *release) list(t *testing.T, imports []string, require ...string) []string {
	t.Helper()
	folder := t.TempDir()
	var text strings.Builder
	text.WriteString("package main\n\nimport (\n")
	for _, path := range imports {
		fmt.Fprintf(&text, "\t_ %q\n", path)
	}
	text.WriteString(")\n\nfunc main() {}\n")
	for name, content := range map[string]string{"main.go": text.String(), "go.mod": "module example.com/importer\n\ngo 1.25.0\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, module := range require {
		r.command(t, folder, "go", "mod", "edit", "-require="+module)
	}
	r.command(t, folder, "go", "mod", "tidy")
	r.command(t, folder, "go", "build", "-o", os.DevNull, ".")
	if text, err := os.ReadFile(filepath.Join(folder, "go.mod")); err != nil || !strings.Contains(string(text), "\ngo 1.25.0\n") {
		t.Errorf("the Go version of the program was raised: %v\n%s", err, text)
	}
	return strings.Split(strings.TrimSpace(r.command(t, folder, "go", "list", "-m", "all")), "\n")
}

func (r *release) library(t *testing.T) {
	got := r.list(t, []string{fileproxy.Root + "/limiter", fileproxy.Root + "/middleware/httplimit", fileproxy.Root + "/pace"}, fileproxy.Root+"@"+version)
	if want := []string{"example.com/importer", fileproxy.Root + " " + version}; !slices.Equal(got, want) {
		t.Errorf("got the modules %q, want %q", got, want)
	}
}

func (r *release) raisesNothing(t *testing.T) {
	pinned := []string{"github.com/prometheus/client_golang v1.20.0", "google.golang.org/protobuf v1.34.2", "golang.org/x/sync v0.8.0"}
	require := []string{fileproxy.Root + "@" + version}
	for _, module := range pinned {
		require = append(require, strings.ReplaceAll(module, " ", "@"))
	}
	theirs := []string{"github.com/prometheus/client_golang/prometheus", "google.golang.org/protobuf/proto", "golang.org/x/sync/errgroup"}
	for name, ours := range map[string]string{"limiter": "/limiter", "guard": "/guard", "store/memcached": "/store/memcached", "pace": "/pace"} {
		got := r.list(t, append(slices.Clone(theirs), fileproxy.Root+ours), require...)
		for _, module := range pinned {
			if !slices.Contains(got, module) {
				t.Errorf("a program with %s got the modules %q, want %s", name, got, module)
			}
		}
	}
}

func (r *release) redis(t *testing.T) {
	const client = "github.com/redis/rueidis"
	got := r.list(t, []string{fileproxy.Root + "/store/redis"}, fileproxy.Root+"@"+version, fileproxy.Root+"/store/redis@"+version)
	at := slices.IndexFunc(got, func(module string) bool { return strings.HasPrefix(module, client+" ") })
	if at < 0 {
		t.Fatalf("got the modules %q without %s", got, client)
	}
	want := append(r.list(t, []string{client}, strings.ReplaceAll(got[at], " ", "@")), fileproxy.Root+" "+version, fileproxy.Root+"/store/redis "+version)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got the modules\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (r *release) install(t *testing.T) {
	bin := t.TempDir()
	run(t, append(slices.Clone(r.env), "GOBIN="+bin), bin, "go", "install", fileproxy.Root+"/cmd/headgate@"+version)
	if got := r.command(t, bin, filepath.Join(bin, "headgate"), "version"); !strings.HasPrefix(got, "headgate "+version+",") {
		t.Errorf("headgate version prints %q, want the version %s", got, version)
	}
}

func (r *release) requirements(t *testing.T) {
	for _, m := range r.modules {
		name := filepath.Join(r.root, m.Folder, "go.mod")
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := modfile.Parse(name, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m.Published && len(file.Replace) > 0 {
			t.Errorf("%s has a replace: go install refuses such a module", m.Path())
		}
		if m.Folder == "." && len(file.Require) > 0 {
			t.Errorf("the root module requires %s: move the package that needs it to a module of its own", file.Require[0].Mod)
		}
		for _, required := range file.Require {
			if at := slices.IndexFunc(r.modules, func(other fileproxy.Module) bool { return other.Path() == required.Mod.Path }); at >= 0 && m.Published && !r.modules[at].Published {
				t.Errorf("%s requires %s, which is not published", m.Path(), required.Mod.Path)
			}
		}
	}
}
