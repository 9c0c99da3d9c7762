package fileproxy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// workspace writes files to a folder, which becomes a repository with one commit.
func workspace(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, words := range [][]string{{"init", "--quiet"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "a"}} {
		git := exec.CommandContext(t.Context(), "git", words...)
		git.Dir = root
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", words, err, out)
		}
	}
	return root
}

// TestZip compares the checksum of a module with that of a proxy that reads the repository.
func TestZip(t *testing.T) {
	root := workspace(t, map[string]string{
		"go.work": "go 1.25.0\n\nuse (\n\t.\n\t./a\n)\n", "LICENSE": "a license\n", ".gitignore": "/bin/\n",
		"go.mod": "module " + Root + "\n\ngo 1.25.0\n", "root.go": "package headgate\n", "testdata/x": "x",
		"a/go.mod": "module " + Root + "/a\n\ngo 1.25.0\n", "a/a.go": "package a\n", "a/b/go.mod": "module example.com/b\n", "a/b/b.go": "package b\n",
	})
	if err := os.Mkdir(filepath.Join(root, "bin"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bin", "built"), []byte("no file of git"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, m := range []Module{{Folder: "."}, {Folder: "a"}} {
		v := module.Version{Path: m.Path(), Version: "v0.1.0"}
		proxy, want := t.TempDir(), filepath.Join(t.TempDir(), "want.zip")
		if err := write(t.Context(), root, m, v.Version, proxy); err != nil {
			t.Fatal(err)
		}
		to, err := os.Create(want)
		if err != nil {
			t.Fatal(err)
		}
		subfolder := strings.TrimPrefix(m.Folder, ".")
		if err := zip.CreateFromVCS(to, v, root, "HEAD", subfolder); err != nil {
			t.Fatal(err)
		}
		if err := to.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := sum(t, filepath.Join(proxy, m.Path(), "@v", "v0.1.0.zip")), sum(t, want); got != want {
			t.Errorf("%s has the checksum %s, want %s", m.Path(), got, want)
		}
	}
}

func sum(t *testing.T, file string) string {
	t.Helper()
	hash, err := dirhash.HashZip(file, dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// TestModules: each module follows those that it requires, and a cycle is an error.
func TestModules(t *testing.T) {
	files := map[string]string{
		"go.work":  "go 1.25.0\n\nuse (\n\t./a\n\t./b\n\t.\n)\n\nreplace (\n\t" + Root + " v0.1.0 => ./\n\t" + Root + "/a v0.1.0 => ./a\n)\n",
		"go.mod":   "module " + Root + "\n\ngo 1.25.0\n",
		"a/go.mod": "module " + Root + "/a\n\ngo 1.25.0\n\nrequire " + Root + "/b v0.1.0\n",
		"b/go.mod": "module " + Root + "/b\n\ngo 1.25.0\n\nrequire " + Root + " v0.1.0\n",
	}
	got, err := Modules(workspace(t, files))
	if want := []Module{{".", true}, {"b", false}, {"a", true}}; err != nil || len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got the modules %v, %v, want %v", got, err, want)
	}
	files["go.mod"] += "\nrequire " + Root + "/a v0.1.0\n"
	if got, err := Modules(workspace(t, files)); err == nil || !strings.Contains(err.Error(), "in a cycle") {
		t.Errorf("got the modules %v, %v, want an error for the cycle", got, err)
	}
}
