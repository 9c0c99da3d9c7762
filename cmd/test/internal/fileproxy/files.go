package fileproxy

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/zip"
)

// treeFile is a file of a module's zip.
type treeFile struct {
	name string // path in the module
	file string // path on disk
}

func (f treeFile) Path() string                 { return f.name }
func (f treeFile) Lstat() (os.FileInfo, error)  { return os.Lstat(f.file) }
func (f treeFile) Open() (io.ReadCloser, error) { return os.Open(f.file) }

// Files returns the files of a module that git has or would add, as the go command packs them: without the files of nested
// modules, and with the LICENSE of the root.
func Files(ctx context.Context, root string, m Module) ([]zip.File, error) {
	names, err := tracked(ctx, filepath.Join(root, m.Folder))
	if err != nil {
		return nil, err
	}
	var nested []string
	for _, name := range names {
		if folder, is := strings.CutSuffix(name, "/go.mod"); is {
			nested = append(nested, folder+"/")
		}
	}
	var files []zip.File
	for _, name := range names {
		if !slices.ContainsFunc(nested, func(folder string) bool { return strings.HasPrefix(name, folder) }) {
			files = append(files, treeFile{name, filepath.Join(root, m.Folder, filepath.FromSlash(name))})
		}
	}
	if !slices.Contains(names, "LICENSE") {
		files = append(files, treeFile{"LICENSE", filepath.Join(root, "LICENSE")})
	}
	return files, nil
}

// tracked lists the files in a folder that git has or would add and that exist.
func tracked(ctx context.Context, folder string) ([]string, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = folder
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files in %s: %w", folder, err)
	}
	names := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	return slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Lstat(filepath.Join(folder, filepath.FromSlash(name)))
		return err != nil || !info.Mode().IsRegular()
	}), nil
}

// Copy copies the files that git has or would add from root to an empty folder, which becomes a repository.
func Copy(ctx context.Context, root, to string) error {
	names, err := tracked(ctx, root)
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		target := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(target, data, 0o600); err != nil { //nolint:gosec // the caller names the folder
			return err
		}
	}
	start := exec.CommandContext(ctx, "git", "init", "--quiet", to) //nolint:gosec // as above
	if out, err := start.CombinedOutput(); err != nil {
		return fmt.Errorf("git init %s: %w: %s", to, err, out)
	}
	return nil
}
