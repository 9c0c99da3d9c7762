// Package compile builds the programs that the benchmarks start.
package compile

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program is a main package. In is the folder of its module, and Path is the package's path in that module.
type Program struct{ In, Path string }

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

// Into builds programs without cgo into a folder, as in the container image. The packages are those that lint and the tests without the
// race detector have built.
func Into(ctx context.Context, folder string, programs ...Program) error {
	for _, p := range programs {
		//nolint:gosec // The benchmarks name the programs.
		cmd := exec.CommandContext(ctx, "go", "build", "-o", folder+string(filepath.Separator), p.Path)
		cmd.Dir, cmd.Env = p.In, append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("compile: go build %s in %s: %w\n%s", p.Path, p.In, err, text)
		}
	}
	return nil
}
