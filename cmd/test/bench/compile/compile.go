// Package compile builds the programs that the benchmarks start.
package compile

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Program is a main package. In is the folder of its module, and Path is the package's path in that module. Flags are those of go build.
type Program struct {
	In, Path string
	Flags    []string
}

// Released are the flags of make build that concern the code of requests.
func Released() []string { return []string{"-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w"} }

// Modules returns the root folder and the folder of the module of the benchmarks. The working folder must be in one of the latter's
// packages.
func Modules(ctx context.Context) (headgate, bench string, err error) {
	text, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", "", fmt.Errorf("compile: go list: %w", err)
	}
	bench = strings.TrimSpace(string(text))
	return filepath.Join(bench, "..", "..", ".."), bench, nil
}

// Commit builds a program of an earlier commit of the repository into a folder, from the commit's files.
func Commit(ctx context.Context, repository, commit, folder, path string) error {
	source := filepath.Join(folder, "source")
	if err := os.MkdirAll(source, 0o750); err != nil {
		return err
	}
	//nolint:gosec // The user names the commit.
	cmd := exec.CommandContext(ctx, "git", "archive", "--output", source+".tar", commit)
	cmd.Dir = repository
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile: git archive %s: %w: name a commit of this repository\n%s", commit, err, text)
	}
	//nolint:gosec // The arguments are paths of this package.
	if text, err := exec.CommandContext(ctx, "tar", "-xf", source+".tar", "-C", source).CombinedOutput(); err != nil {
		return fmt.Errorf("compile: tar: %w\n%s", err, text)
	}
	return Into(ctx, folder, Program{In: source, Path: path})
}

// Into builds programs without cgo into a folder, as in the container image. The packages are those that lint and the tests without the
// race detector have built.
func Into(ctx context.Context, folder string, programs ...Program) error {
	for _, p := range programs {
		args := slices.Concat([]string{"build"}, p.Flags, []string{"-o", folder + string(filepath.Separator), p.Path})
		cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // The benchmarks name the programs.
		cmd.Dir, cmd.Env = p.In, append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("compile: go build %s in %s: %w\n%s", p.Path, p.In, err, text)
		}
	}
	return nil
}
