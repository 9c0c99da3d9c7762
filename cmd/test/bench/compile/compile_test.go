package compile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommit builds a program whose working copy differs from the commit.
func TestCommit(t *testing.T) {
	repository := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(repository, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = repository
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, text)
		}
		return strings.TrimSpace(string(text))
	}
	write("go.mod", "module example.org/program\n\ngo 1.26.0\n")
	write("main.go", "package main\n\nfunc main() { println(\"before\") }\n")
	run("git", "init", "--quiet")
	run("git", "add", ".")
	run("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "first")
	write("main.go", "package main\n\nfunc main() { println(\"after\") }\n")
	folder := filepath.Join(t.TempDir(), "before")
	if err := Commit(t.Context(), repository, "HEAD", folder, "."); err != nil {
		t.Fatal(err)
	}
	if got := run(filepath.Join(folder, "program")); got != "before" {
		t.Errorf("got the output %q, want that of the commit", got)
	}
	if err := Commit(t.Context(), repository, "none", folder, "."); err == nil || !strings.Contains(err.Error(), "name a commit") {
		t.Errorf("unknown commit: got the error %v", err)
	}
}
