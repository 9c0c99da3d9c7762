package main

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
)

const (
	modulePath = "github.com/headgate/headgate"
	racePath   = modulePath + "/internal/testkit/race"
	suitePath  = modulePath + "/store/storetest"
)

// source is one parsed file, with the qualified names in it that depend on the race detector:
// "race.On", "race.Fewer" or "storetest.Run".
type source struct {
	file   *ast.File
	tagged bool // The build constraint names the detector.
	known  map[string]bool
}

// dependents returns the names of the folder's functions, methods, variables and constants that
// depend on the race detector, including tests. It compares only names: the result may have
// too many names, but never too few. suite has the dependents of store/storetest.
func dependents(folder string, suite map[string]bool) (map[string]bool, error) {
	sources, err := parse(folder, suite)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, s := range sources {
		if s.tagged {
			for name := range declared(s.file) {
				found[name] = true
			}
		}
	}
	for grown := true; grown; {
		grown = false
		for _, s := range sources {
			for name, node := range declared(s.file) {
				if !found[name] && s.uses(node, found) {
					found[name], grown = true, true
				}
			}
		}
	}
	return found, nil
}

// parse reads the Go files of a folder that belong to a test without build tags.
func parse(folder string, suite map[string]bool) ([]source, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var sources []source
	for _, name := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		soak, tagged := tags(file)
		if soak {
			continue
		}
		sources = append(sources, source{file, tagged, knownNames(file, suite)})
	}
	return sources, nil
}

// tags reports whether a file's build constraint names soak, and whether it names race.
func tags(file *ast.File) (soak, race bool) {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() > file.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			expression, err := constraint.Parse(c.Text)
			if err != nil {
				continue
			}
			expression.Eval(func(tag string) bool {
				soak, race = soak || tag == "soak", race || tag == "race"
				return true
			})
		}
	}
	return soak, race
}

// knownNames returns the names of other packages that depend on the detector, as this file
// writes them.
func knownNames(file *ast.File, suite map[string]bool) map[string]bool {
	known := map[string]bool{}
	for _, spec := range file.Imports {
		to := strings.Trim(spec.Path.Value, `"`)
		as := path.Base(to)
		if spec.Name != nil {
			as = spec.Name.Name
		}
		switch to {
		case racePath:
			known[as+".On"], known[as+".Fewer"] = true, true
		case suitePath:
			for name := range suite {
				known[as+"."+name] = true
			}
		}
	}
	return known
}

// declared returns the top-level declarations of a file by name.
func declared(file *ast.File) map[string]ast.Node {
	names := map[string]ast.Node{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[d.Name.Name] = d
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range value.Names {
						names[name.Name] = value
					}
				}
			}
		}
	}
	return names
}

// uses reports whether a declaration names a dependent.
func (s *source) uses(node ast.Node, found map[string]bool) (yes bool) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && s.known[x.Name+"."+n.Sel.Name] {
				yes = true
			}
		case *ast.Ident:
			yes = yes || found[n.Name]
		}
		return !yes
	})
	return yes
}

// allTests returns the names of all tests of a folder.
func allTests(folder string) ([]string, error) {
	sources, err := parse(folder, nil)
	names := map[string]bool{}
	for _, s := range sources {
		for name := range declared(s.file) {
			names[name] = true
		}
	}
	return testsAmong(names), err
}
