// Package fileproxy publishes the modules of a workspace to a folder that the go command reads as a module proxy.
package fileproxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// Root is the path of the root module. The paths of the other modules begin with it.
const Root = "github.com/headgate/headgate"

// Module is a module of the workspace.
type Module struct {
	// Folder starts at the root of the workspace. It is "." for the root module.
	Folder string
	// Published says that users can require the module: go.work has a replace for it.
	Published bool
}

// Path returns the module path.
func (m Module) Path() string {
	if m.Folder == "." {
		return Root
	}
	return Root + "/" + m.Folder
}

// Modules returns the modules of the go.work file in root. Each module follows those that it requires.
func Modules(root string) ([]Module, error) {
	name := filepath.Join(root, "go.work")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork(name, text, nil)
	if err != nil {
		return nil, err
	}
	waiting, needs := []Module{}, map[string][]string{}
	for _, use := range work.Use {
		m := Module{Folder: filepath.ToSlash(filepath.Clean(use.Path))}
		m.Published = slices.ContainsFunc(work.Replace, func(r *modfile.Replace) bool { return r.Old.Path == m.Path() })
		if needs[m.Path()], err = siblings(filepath.Join(root, m.Folder)); err != nil {
			return nil, err
		}
		waiting = append(waiting, m)
	}
	var ordered []Module
	for len(waiting) > 0 {
		ready := slices.IndexFunc(waiting, func(m Module) bool {
			return !slices.ContainsFunc(waiting, func(other Module) bool { return slices.Contains(needs[m.Path()], other.Path()) })
		})
		if ready < 0 {
			return nil, fmt.Errorf("%s: the modules %v require each other in a cycle: move a test or a package", name, waiting)
		}
		ordered = append(ordered, waiting[ready])
		waiting = slices.Delete(waiting, ready, ready+1)
	}
	return ordered, nil
}

// siblings returns the paths of the modules of this workspace that the module in a folder requires.
func siblings(folder string) ([]string, error) {
	file, err := parse(folder)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, r := range file.Require {
		if isOurs(r.Mod.Path) {
			paths = append(paths, r.Mod.Path)
		}
	}
	return paths, nil
}

func parse(folder string) (*modfile.File, error) {
	name := filepath.Join(folder, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(name, text, nil)
}

func isOurs(path string) bool { return path == Root || strings.HasPrefix(path, Root+"/") }

// Publish requires the siblings of each module at one version, tidies the modules of the workspace in root, and writes the
// published ones to the folder proxy. The zip of a module has no nested module, so its checksum is final before the modules that
// require it are tidied. Publish changes the go.mod and go.sum files below root. env is the Environment of the proxy.
func Publish(ctx context.Context, root, version, proxy string, env []string) error {
	modules, err := Modules(root)
	if err != nil {
		return err
	}
	for _, m := range modules {
		folder := filepath.Join(root, m.Folder)
		if err := pin(folder, version); err != nil {
			return err
		}
		tidy := exec.CommandContext(ctx, "go", "mod", "tidy")
		tidy.Dir, tidy.Env = folder, env
		if out, err := tidy.CombinedOutput(); err != nil {
			return fmt.Errorf("go mod tidy in %s: %w\n%s", m.Folder, err, out)
		}
		if !m.Published {
			continue
		}
		if err := write(ctx, root, m, version, proxy); err != nil {
			return fmt.Errorf("publishing %s: %w", m.Path(), err)
		}
	}
	return nil
}

// pin requires the siblings at a version and forgets their checksums.
func pin(folder, version string) error {
	file, err := parse(folder)
	if err != nil {
		return err
	}
	for _, r := range slices.Clone(file.Require) {
		if isOurs(r.Mod.Path) {
			if err := file.AddRequire(r.Mod.Path, version); err != nil {
				return err
			}
		}
	}
	text, err := file.Format()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), text, 0o600); err != nil {
		return err
	}
	return ForgetSums(folder)
}

// ForgetSums removes the checksums of the workspace's modules from the go.sum file in a folder. They hold for a release only.
func ForgetSums(folder string) error {
	name := filepath.Join(folder, "go.sum")
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		if path, _, _ := strings.Cut(line, " "); !isOurs(path) {
			kept.WriteString(line)
		}
	}
	return os.WriteFile(name, []byte(kept.String()), 0o600)
}

// write adds one version of a module to the proxy.
func write(ctx context.Context, root string, m Module, version, proxy string) (err error) {
	escaped, err := module.EscapePath(m.Path())
	if err != nil {
		return err
	}
	base := filepath.Join(proxy, filepath.FromSlash(escaped), "@v", version)
	if err := os.MkdirAll(filepath.Dir(base), 0o750); err != nil {
		return err
	}
	gomod, err := os.ReadFile(filepath.Join(root, m.Folder, "go.mod"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(base+".mod", gomod, 0o600); err != nil { //nolint:gosec // the caller names the folder
		return err
	}
	if err := list(filepath.Join(filepath.Dir(base), "list"), version); err != nil {
		return err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Unix(0, 0).UTC().Format(time.RFC3339))
	if err := os.WriteFile(base+".info", []byte(info), 0o600); err != nil {
		return err
	}
	files, err := Files(ctx, root, m)
	if err != nil {
		return err
	}
	to, err := os.Create(base + ".zip")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return zip.Create(to, module.Version{Path: m.Path(), Version: version}, files)
}

// list adds a version to the versions that a proxy lists.
func list(file, version string) error {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if slices.Contains(strings.Fields(string(text)), version) {
		return nil
	}
	return os.WriteFile(file, append(text, version+"\n"...), 0o600) //nolint:gosec // as in write
}
