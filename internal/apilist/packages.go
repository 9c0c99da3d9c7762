package apilist

import (
	"bytes"
	"context"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/errortype"
)

const module = "github.com/headgate/headgate"

// Folder has the lists, below the root.
const Folder = "internal/dev/api"

// notPublic reports whether the packages of a folder are not for users.
func notPublic(folder string) bool {
	first, _, _ := strings.Cut(folder, "/")
	return first == "cmd" || first == "docs" || isInternal(folder)
}

// isInternal reports whether only packages of this repository can import a path.
func isInternal(path string) bool { return strings.Contains("/"+path+"/", "/internal/") }

// All returns the list of each public package of the modules in root. The keys are the names of
// the files in Folder. inside are the lines with types of internal packages. The go command builds
// packages that are not in its cache.
func All(ctx context.Context, root string) (lists map[string]string, inside []string, err error) {
	public, err := publicPackages(ctx, root)
	if err != nil {
		return nil, nil, err
	}
	exports, err := exportFiles(ctx, root, public)
	if err != nil {
		return nil, nil, err
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	lists = map[string]string{}
	for _, path := range public {
		p, err := from.Import(path)
		if err != nil {
			return nil, nil, fmt.Errorf("apilist: %s: %w", path, err)
		}
		w := write(p)
		lists[fileOf(path)], inside = strings.Join(w.lines, "\n")+"\n", append(inside, w.inside...)
	}
	return lists, inside, nil
}

// publicPackages returns the import paths of the packages for users, of all modules of the workspace.
func publicPackages(ctx context.Context, root string) ([]string, error) {
	lines, err := goList(ctx, root, "-f", "{{if .GoFiles}}{{.ImportPath}}{{end}}", "work")
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
	if failed, ok := errortype.As[*exec.ExitError](err); ok {
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

// write writes the sorted lines of a package.
func write(p *types.Package) *writer {
	w := &writer{own: p}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			w.object(o)
		}
	}
	slices.Sort(w.lines)
	return w
}
