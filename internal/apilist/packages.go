package apilist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const module = "github.com/headgate/headgate"

// notPublic reports whether the packages of a folder are not for users.
func notPublic(folder string) bool {
	first, _, _ := strings.Cut(folder, "/")
	return slices.Contains([]string{"cmd", "deploy", "examples", "internal", "proto", "scripts", "test", "tools"}, first) ||
		strings.Contains(folder, "/internal/")
}

// All returns the list of each public package of the module in root. The keys are the names of
// the files in api/. The go command builds packages that are not in its cache.
func All(ctx context.Context, root string) (map[string]string, error) {
	public, err := publicPackages(ctx, root)
	if err != nil {
		return nil, err
	}
	exports, err := exportFiles(ctx, root, public)
	if err != nil {
		return nil, err
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	lists := map[string]string{}
	for _, path := range public {
		p, err := from.Import(path)
		if err != nil {
			return nil, fmt.Errorf("apilist: %s: %w", path, err)
		}
		lists[fileOf(path)] = list(p)
	}
	return lists, nil
}

// publicPackages returns the import paths of the packages for users.
func publicPackages(ctx context.Context, root string) ([]string, error) {
	lines, err := goList(ctx, root, "-f", "{{if .GoFiles}}{{.ImportPath}}{{end}}", "./...")
	return slices.DeleteFunc(lines, func(path string) bool { return notPublic(strings.TrimPrefix(path, module+"/")) }), err
}

// exportFiles returns the files with the export data of packages and all their imports.
func exportFiles(ctx context.Context, root string, packages []string) (map[string]string, error) {
	lines, err := goList(ctx, root, append([]string{"-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}"}, packages...)...)
	files := make(map[string]string, len(lines))
	for _, line := range lines {
		path, file, _ := strings.Cut(line, " ")
		files[path] = file
	}
	return files, err
}

func goList(ctx context.Context, root string, args ...string) ([]string, error) {
	list := exec.CommandContext(ctx, "go", "list")
	list.Args = append(list.Args, args...)
	list.Dir = root
	out, err := list.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("apilist: go list: %w: %s", err, bytes.TrimSpace(failed.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("apilist: go list: %w", err)
	}
	return slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool { return line == "" }), nil
}

// fileOf returns the file name of a package, like store.memory.txt for store/memory.
func fileOf(path string) string {
	folder := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
	if folder == "" {
		folder = "headgate"
	}
	return strings.ReplaceAll(folder, "/", ".") + ".txt"
}

// list returns the sorted lines of a package.
func list(p *types.Package) string {
	w := writer{own: p}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			w.object(o)
		}
	}
	slices.Sort(w.lines)
	return strings.Join(w.lines, "\n") + "\n"
}
