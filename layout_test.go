package headgate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// This file checks that the tree matches docs/architecture.md: the three import
// rules, clear folder names, readable sizes of files and functions, and correct maps. The
// modules keep the other rules: the root module requires nothing, so the library cannot import
// another module, a leaf or generated types.
// Each rule is a pure function over one parsed file. TestLayoutRulesCatch shows that
// each rule can fail.

const modulePath = "github.com/headgate/headgate"

// The folders, functions and names that the rules use. Paths start at the root.
var (
	// pure packages do no I/O, start no goroutine and read no clock.
	pure = []string{"internal/keyhash", "internal/limit", "internal/calendar", "internal/domain", "internal/share", "internal/sorting", "internal/usage", "guard/fairshare", "internal/throttle", "internal/lease/state", "internal/lease/holder", "internal/pace/schedule", "internal/pace/feedback", "internal/pace/adaptive"}
	// forTests are the packages that only tests import.
	forTests = []string{"internal/apilist", "internal/dev", "internal/prose", "internal/testkit"}
	// generatedTypes are the modules and folders of types that a protocol generates.
	generatedTypes = []string{
		modulePath + "/internal/proto/headgate", "github.com/envoyproxy/go-control-plane", "github.com/cncf/xds",
	}
	// doesIO are the standard packages that do I/O. The packages of noIO only parse names,
	// so they are allowed.
	doesIO = []string{
		"crypto/rand", "database/sql", "io/fs", "io/ioutil", "log", "net", "os", "path/filepath", "plugin", "syscall", "testing",
	}
	noIO = []string{"net/netip", "net/url"}
	// clockReaders are the functions that read the clock or wait.
	clockReaders = map[string][]string{
		"time":    {"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "NewTimer", "NewTicker", "Tick"},
		"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
	}
	// roomFronts are the fronts of features that have a room of their own. The others are below cmd/internal/front.
	roomFronts = []string{"cmd/internal/envoy/rls", "cmd/internal/lease/front"}
	// vagueNames are folder and file names that do not say what is inside.
	vagueNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "manager", "impl"}
)

const (
	maxFileLines     = 500
	maxFunctionLines = 70
	// maxWired bounds the packages of this repository that cmd/internal/app imports: the rooms of features, and what all of them use.
	maxWired = 15
)

// sourceFile has the facts about one Go file that the rules check.
type sourceFile struct {
	dir       string // path from the root, "" for the root itself
	name      string
	test      bool // *_test.go
	generated bool
	lines     int
	imports   []string
	functions []function
	clocks    []spot // uses of the clock
	spawns    []spot // go statements
	messages  []spot // composite literals of generated types
}

type function struct {
	name        string
	line, lines int
}

type spot struct {
	line int
	what string
}

// rule is one requirement for every file. check returns the violations, and advice says
// how to correct them.
type rule struct {
	name   string
	advice string
	check  func(*sourceFile) []string
}

func importRules() []rule {
	return []rule{
		{
			"import rule 1/only tests import what is for tests",
			"move the shared code out of " + strings.Join(forTests, ", "),
			func(f *sourceFile) []string {
				return f.importsWhere(func(to string) bool {
					dir, ours := folderOf(to)
					return ours && !f.test && !underAny(f.dir, forTests...) && !underAny(f.dir, "cmd/internal/testkit", "cmd/test") && underAny(dir, forTests...)
				})
			},
		},
		{
			"import rule 1/pure packages do no I/O",
			"take the value as an argument, and let the caller read or log it",
			func(f *sourceFile) []string {
				return f.importsWhere(func(to string) bool {
					return f.pure() && (to == "C" || underAny(to, doesIO...) && !underAny(to, noIO...))
				})
			},
		},
		{
			"import rule 1/pure packages import only the root and each other",
			"take the value as an argument, or move the code into the root or a pure package",
			func(f *sourceFile) []string {
				return f.importsWhere(func(to string) bool {
					dir, ours := folderOf(to)
					return f.pure() && (isOutside(to) || ours && dir != "" && !underAny(dir, pure...))
				})
			},
		},
		{
			"import rule 1/pure packages read no clock",
			"take the time as an argument, as a headgate.Instant",
			func(f *sourceFile) []string { return f.spotsIf(f.pure(), f.clocks) },
		},
		{
			"import rule 1/pure packages start no goroutine",
			"return the task, and let the caller run it",
			func(f *sourceFile) []string { return f.spotsIf(f.pure(), f.spawns) },
		},
		{
			"import rule 2/generated types stop in convert.go and in clients",
			"convert to types of this module in convert.go; only the server.go of a front may also name generated types, for the interfaces that it serves",
			func(f *sourceFile) []string {
				free := f.test || underAny(f.dir, "client", "internal/proto", "cmd/test") || f.name == "convert.go" || f.frontServer()
				return f.importsWhere(func(to string) bool { return !free && isGenerated(to) })
			},
		},
		{
			"import rule 2/a front's server.go builds no generated types",
			"build the message in convert.go, beside the code that reads it",
			func(f *sourceFile) []string { return f.spotsIf(f.frontServer(), f.messages) },
		},
		{
			"import rule 3/only cmd/headgate and tests import cmd/internal/app",
			"take the value that app makes as an argument: app imports the other packages, and they must not import app",
			func(f *sourceFile) []string {
				return f.importsWhere(func(to string) bool {
					dir, ours := folderOf(to)
					return ours && under(dir, "cmd/internal/app") && !underAny(f.dir, "cmd/headgate", "cmd/test", "cmd/internal/app")
				})
			},
		},
		{
			"import rule 3/fronts never import each other",
			"move the shared code into cmd/internal/front or into guard",
			func(f *sourceFile) []string {
				return f.importsWhere(func(to string) bool {
					dir, ours := folderOf(to)
					front := frontOf(dir)
					return ours && front != "" && frontOf(f.dir) != "" && frontOf(f.dir) != front
				})
			},
		},
	}
}

func sizeRules() []rule {
	return []rule{
		{
			"no file is over 500 lines",
			"split it by task",
			func(f *sourceFile) []string {
				if f.test || f.generated || f.lines <= maxFileLines {
					return nil
				}
				return []string{fmt.Sprintf("%s: %d lines", f.path(), f.lines)}
			},
		},
		{
			"no function is over 70 lines",
			"move its steps into functions with names",
			func(f *sourceFile) []string {
				var found []string
				for _, fn := range f.functions {
					if !f.test && !f.generated && fn.lines > maxFunctionLines {
						found = append(found, fmt.Sprintf("%s:%d: %s has %d lines", f.path(), fn.line, fn.name, fn.lines))
					}
				}
				return found
			},
		},
		{
			"no file has a vague name",
			"choose a name that says what is inside",
			func(f *sourceFile) []string {
				if slices.Contains(vagueNames, strings.TrimSuffix(strings.TrimSuffix(f.name, ".go"), "_test")) {
					return []string{f.path()}
				}
				return nil
			},
		},
	}
}

// TestLayoutImports checks the three import rules for every package of the workspace.
func TestLayoutImports(t *testing.T) {
	files := parseAll(t, packageFiles(t))
	for _, r := range importRules() {
		t.Run(r.name, func(t *testing.T) { holds(t, r, files) })
	}
}

// TestLayoutWiring checks that cmd/internal/app only joins the rooms of features: a package that one feature needs is imported by its
// room.
func TestLayoutWiring(t *testing.T) {
	wired := wiredBy("cmd/internal/app", parseAll(t, packageFiles(t)))
	if len(wired) > maxWired {
		t.Errorf("cmd/internal/app imports %d packages of this repository, and may import %d: move the code of a feature into its room: %q",
			len(wired), maxWired, wired)
	}
	if len(wired) < maxWired {
		t.Errorf("cmd/internal/app imports %d packages of this repository: lower maxWired, so that it stays so", len(wired))
	}
}

// wiredBy lists the packages of this repository that the files of a folder import, without its tests.
func wiredBy(dir string, files []*sourceFile) []string {
	var all []string
	for _, f := range files {
		for _, to := range f.imports {
			if _, ours := folderOf(to); ours && f.dir == dir && !f.test && !slices.Contains(all, to) {
				all = append(all, to)
			}
		}
	}
	return all
}

// TestLayoutSizes checks the rules of size and name for every Go file of the
// repository, including nested modules.
func TestLayoutSizes(t *testing.T) {
	_, sources := walk(t)
	files := parseAll(t, sources)
	for _, r := range sizeRules() {
		t.Run(r.name, func(t *testing.T) { holds(t, r, files) })
	}
}

// TestLayoutFolderNames checks that each folder name says what is inside.
func TestLayoutFolderNames(t *testing.T) {
	folders, _ := walk(t)
	for _, folder := range folders {
		if vagueFolderName(folder) {
			t.Errorf("folder %s has a name like util or common: choose a name that says what is inside", folder)
		}
	}
}

// TestLayoutMaps checks that the folders in doc.go and docs/architecture.md exist.
func TestLayoutMaps(t *testing.T) {
	for file, foldersIn := range map[string]func(string) []string{
		"doc.go":               foldersInDoc,
		"docs/architecture.md": foldersInMarkdown,
	} {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("the map is missing: write %s: %v", file, err)
			}
			folders := foldersIn(string(text))
			if len(folders) == 0 {
				t.Fatalf("%s names no folder: begin a line of a code block with a folder (guard/), or put it in backquotes in Markdown", file)
			}
			for _, folder := range folders {
				if info, err := os.Stat(filepath.FromSlash(folder)); err != nil || !info.IsDir() {
					t.Errorf("%s names the folder %s, which does not exist: correct the map, or make the folder", file, folder)
				}
			}
		})
	}
}

func holds(t *testing.T, r rule, files []*sourceFile) {
	t.Helper()
	for _, f := range files {
		for _, problem := range r.check(f) {
			t.Errorf("%s: %s", problem, r.advice)
		}
	}
}

func (f *sourceFile) path() string { return path.Join(f.dir, f.name) }

func (f *sourceFile) pure() bool { return !f.test && underAny(f.dir, pure...) }

// frontServer reports whether the file implements a generated service. The methods of
// the service have generated types, so server.go must name them.
func (f *sourceFile) frontServer() bool {
	return !f.test && f.name == "server.go" && frontOf(f.dir) != ""
}

func (f *sourceFile) importsWhere(forbidden func(to string) bool) []string {
	var found []string
	for _, to := range f.imports {
		if forbidden(to) {
			found = append(found, fmt.Sprintf("%s imports %s", f.path(), to))
		}
	}
	return found
}

func (f *sourceFile) spotsIf(applies bool, spots []spot) []string {
	if !applies {
		return nil
	}
	var found []string
	for _, s := range spots {
		found = append(found, fmt.Sprintf("%s:%d: %s", f.path(), s.line, s.what))
	}
	return found
}

// under reports whether a path is a folder or lies below it.
func under(p, folder string) bool { return p == folder || strings.HasPrefix(p, folder+"/") }

func underAny(p string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return under(p, folder) })
}

// folderOf returns the folder of a package of this repository.
func folderOf(importPath string) (dir string, ours bool) {
	if importPath == modulePath {
		return "", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

// isOutside reports whether a package belongs to another module. The first path element
// of a standard package has no dot. cgo counts as another module.
func isOutside(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return importPath == "C" || strings.Contains(first, ".") && !under(importPath, modulePath)
}

func isGenerated(importPath string) bool { return underAny(importPath, generatedTypes...) }

// frontOf returns the front that a folder belongs to: resp for cmd/internal/front/resp.
func frontOf(dir string) string {
	if at := slices.IndexFunc(roomFronts, func(front string) bool { return under(dir, front) }); at >= 0 {
		return roomFronts[at]
	}
	rest, below := strings.CutPrefix(dir, "cmd/internal/front/")
	if !below {
		return ""
	}
	front, _, _ := strings.Cut(rest, "/")
	return front
}

func vagueFolderName(folder string) bool { return slices.Contains(vagueNames, path.Base(folder)) }

var (
	docLine    = regexp.MustCompile(`(?m)^//\t\s*([a-z][\w./-]*/)(?:\s|$)`)
	backquoted = regexp.MustCompile("`([a-z][\\w./-]*/)`")
	version    = regexp.MustCompile(`^v[0-9]+$`)
	fencedLine = regexp.MustCompile(`^\s*([a-z][\w./-]*/)(?:\s|$)`)
)

// foldersInDoc finds the folders that begin a line of a code block of a Go comment.
func foldersInDoc(text string) []string { return firstGroups(docLine, text) }

// foldersInMarkdown finds the folders in backquotes and the folders that begin a line
// of a fenced block.
func foldersInMarkdown(text string) []string {
	folders := firstGroups(backquoted, text)
	fenced := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced:
			folders = append(folders, firstGroups(fencedLine, line)...)
		}
	}
	return folders
}

func firstGroups(re *regexp.Regexp, text string) []string {
	var found []string
	for _, match := range re.FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

// listedPackage is the part of go list's output that the rules need.
type listedPackage struct {
	Dir            string   `json:"Dir"`
	GoFiles        []string `json:"GoFiles"`
	CgoFiles       []string `json:"CgoFiles"`
	IgnoredGoFiles []string `json:"IgnoredGoFiles"`
	TestGoFiles    []string `json:"TestGoFiles"`
	XTestGoFiles   []string `json:"XTestGoFiles"`
}

// packageFiles lists the Go files of every package of the workspace, including files with
// build tags. Paths start at the root.
func packageFiles(t *testing.T) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=Dir,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", "work")
	list.Stderr = os.Stderr
	output, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for decoder := json.NewDecoder(bytes.NewReader(output)); decoder.More(); {
		var p listedPackage
		if err := decoder.Decode(&p); err != nil {
			t.Fatalf("go list: %v", err)
		}
		dir, err := filepath.Rel(root, p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles) {
			files = append(files, path.Join(filepath.ToSlash(dir), name))
		}
	}
	return files
}

// walk lists the folders and Go files of the repository. Paths start at the root.
func walk(t *testing.T) (folders, goFiles []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(p string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		switch {
		case p == ".":
		case entry.IsDir() && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata"):
			return fs.SkipDir
		case entry.IsDir():
			folders = append(folders, filepath.ToSlash(p))
		case strings.HasSuffix(name, ".go"):
			goFiles = append(goFiles, filepath.ToSlash(p))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders, goFiles
}

func parseAll(t *testing.T, files []string) []*sourceFile {
	t.Helper()
	if len(files) == 0 {
		t.Fatal("no Go file was found: the test must run in the root of the repository")
	}
	var parsed []*sourceFile
	for _, file := range files {
		source, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			t.Fatal(err)
		}
		f, err := parseSource(file, source)
		if err != nil {
			t.Errorf("%s does not parse: %v", file, err)
			continue
		}
		parsed = append(parsed, f)
	}
	return parsed
}

// parseSource parses one file for the rules. The path of the file starts at the root.
func parseSource(file string, source []byte) (*sourceFile, error) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	dir := path.Dir(file)
	if dir == "." {
		dir = ""
	}
	f := &sourceFile{
		dir:       dir,
		name:      path.Base(file),
		test:      strings.HasSuffix(file, "_test.go"),
		generated: ast.IsGenerated(syntax),
		lines:     bytes.Count(source, []byte("\n")),
	}
	line := func(p token.Pos) int { return set.Position(p).Line }
	names := f.readImports(syntax, line)
	ast.Inspect(syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			f.functions = append(f.functions, function{n.Name.Name, line(n.Pos()), line(n.End()) - line(n.Pos()) + 1})
		case *ast.GoStmt:
			f.spawns = append(f.spawns, spot{line(n.Pos()), "starts a goroutine"})
		case *ast.SelectorExpr:
			if imported := importOf(n, names); slices.Contains(clockReaders[imported], n.Sel.Name) {
				f.clocks = append(f.clocks, spot{line(n.Pos()), "uses " + imported + "." + n.Sel.Name})
			}
		case *ast.CompositeLit:
			if selector, ok := n.Type.(*ast.SelectorExpr); ok && isGenerated(importOf(selector, names)) {
				f.messages = append(f.messages, spot{line(n.Pos()), "builds a " + selector.Sel.Name})
			}
		}
		return true
	})
	return f, nil
}

// readImports records the imports of the file and returns their local names. A dot
// import of a clock package counts as a use of the clock, because its uses are not visible.
func (f *sourceFile) readImports(syntax *ast.File, line func(token.Pos) int) map[string]string {
	names := make(map[string]string)
	for _, spec := range syntax.Imports {
		to, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // The parser has already refused an invalid import.
		}
		f.imports = append(f.imports, to)
		name := path.Base(to)
		if parent := path.Base(path.Dir(to)); version.MatchString(name) { // The package …/ratelimit/v3 has the name ratelimitv3, and …/rand/v2 has the name rand.
			names[parent], names[parent+name] = to, to
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." && clockReaders[to] != nil {
			f.clocks = append(f.clocks, spot{line(spec.Pos()), "imports " + to + " without its name"})
		}
		names[name] = to
	}
	return names
}

// importOf returns the package that a selector selects from, or "" for no package.
func importOf(selector *ast.SelectorExpr, names map[string]string) string {
	if x, ok := selector.X.(*ast.Ident); ok {
		return names[x.Name]
	}
	return ""
}

// TestLayoutRulesCatch checks that every rule can fail and that it accepts valid files.
func TestLayoutRulesCatch(t *testing.T) {
	const ours = modulePath + "/"
	long := strings.Repeat("\n", maxFileLines)
	function := func(lines int) string { return "func f() {" + strings.Repeat("\n", lines-1) + "}\n" }
	cases := []struct {
		rule string // the end of its name
		file string
		body string // text after the package clause; a single word is an import
		want string // part of the message; "" for a valid file
	}{
		{"what is for tests", "guard/guard.go", ours + "internal/testkit/redis", "imports " + ours + "internal/testkit/redis"},
		{"what is for tests", "docs/examples/web/main.go", ours + "internal/testkit", "imports"},
		{"what is for tests", "cmd/internal/app/app.go", ours + "internal/testkit/clock", "imports"},
		{"what is for tests", "guard/guard_test.go", ours + "internal/testkit/clock", ""},
		{"what is for tests", "cmd/internal/testkit/guards/guards.go", ours + "internal/testkit/redis", ""},
		{"what is for tests", "guard/guard.go", ours + "internal/testkits", ""},

		{"do no I/O", "internal/limit/step.go", "os", "imports os"},
		{"do no I/O", "internal/lease/state/state.go", "net/http", "imports net/http"},
		{"do no I/O", "internal/share/share.go", "log/slog", "imports log/slog"},
		{"do no I/O", "internal/limit/step.go", "net/netip", ""},
		{"do no I/O", "internal/limit/step_test.go", "os", ""},
		{"do no I/O", "limiter/limiter.go", "os", ""},
		{"do no I/O", "client/lease.go", "net", ""},

		{"only the root and each other", "internal/limit/step.go", ours + "rule", "imports"},
		{"only the root and each other", "internal/share/share.go", "golang.org/x/exp/slices", "imports"},
		{"only the root and each other", "internal/limit/step.go", modulePath, ""},
		{"only the root and each other", "internal/pace/schedule/schedule.go", ours + "internal/limit", ""},
		{"only the root and each other", "pace/pace.go", ours + "store/memory", ""},

		{"read no clock", "internal/limit/step.go", "import \"time\"\nvar _ = time.Now()", "internal/limit/step.go:3: uses time.Now"},
		{"read no clock", "internal/limit/step.go", "import tick \"time\"\nvar now = tick.Since", "uses time.Since"},
		{"read no clock", "internal/limit/step.go", `import . "time"`, "imports time without its name"},
		{"read no clock", "internal/throttle/queue.go", "import \"context\"\nvar _ = context.WithTimeout", "uses context.WithTimeout"},
		{"read no clock", "internal/limit/step.go", "import \"time\"\nvar _ = time.Duration(1)", ""},
		{"read no clock", "internal/limit/step.go", "var _ = clock.Now()", ""},
		{"read no clock", "internal/limit/step_test.go", "import \"time\"\nvar _ = time.Now()", ""},
		{"read no clock", "pace/pace.go", "import \"time\"\nvar _ = time.Now()", ""},

		{"start no goroutine", "internal/throttle/queue.go", "func f() { go f() }", "internal/throttle/queue.go:2: starts a goroutine"},
		{"start no goroutine", "pace/pace.go", "func f() { go f() }", ""},

		{"stop in convert.go and in clients", "cmd/internal/envoy/rls/match.go", ours + "internal/proto/headgate/quota/v1", "imports"},
		{"stop in convert.go and in clients", "cmd/internal/front/server.go", ours + "internal/proto/headgate/quota/v1", "imports"},
		{"stop in convert.go and in clients", "cmd/headgate/ctl.go", ours + "internal/proto/headgate/quota/v1", "imports"},
		{"stop in convert.go and in clients", "cmd/internal/envoy/rls/convert.go", "github.com/cncf/xds/go/xds/type/v3", ""},
		{"stop in convert.go and in clients", "cmd/internal/envoy/rls/server.go", ours + "internal/proto/headgate/quota/v1", ""},
		{"stop in convert.go and in clients", "cmd/internal/envoy/rls/server_test.go", ours + "internal/proto/headgate/quota/v1", ""},
		{"stop in convert.go and in clients", "cmd/test/bench/load.go", ours + "internal/proto/headgate/quota/v1", ""},
		{"stop in convert.go and in clients", "internal/proto/headgate/v1/quota.pb.go", ours + "internal/proto/headgate/type", ""},

		{
			"server.go builds no generated types", "cmd/internal/envoy/rls/server.go",
			"import quota \"" + ours + "internal/proto/headgate/quota/v1\"\nvar _ = &quota.Answer{}", "cmd/internal/envoy/rls/server.go:3: builds a Answer",
		},
		{
			"server.go builds no generated types", "cmd/internal/envoy/rls/server.go",
			"import \"" + ours + "internal/proto/headgate/quota/v1\"\nvar _ = quotav1.Answer{}", "builds a Answer",
		},
		{
			"server.go builds no generated types", "cmd/internal/envoy/rls/server.go",
			"import quota \"" + ours + "internal/proto/headgate/quota/v1\"\ntype server struct { quota.UnimplementedServer }\nfunc (server) Ask(*quota.Question) *quota.Answer { return nil }", "",
		},
		{
			"server.go builds no generated types", "cmd/internal/envoy/rls/convert.go",
			"import quota \"" + ours + "internal/proto/headgate/quota/v1\"\nvar _ = &quota.Answer{}", "",
		},

		{"cmd/headgate and tests import cmd/internal/app", "cmd/internal/ctl/ctl.go", ours + "cmd/internal/app", "imports"},
		{"cmd/headgate and tests import cmd/internal/app", "internal/sim/sim.go", ours + "cmd/internal/app/listen", "imports"},
		{"cmd/headgate and tests import cmd/internal/app", "cmd/headgate/main.go", ours + "cmd/internal/app", ""},
		{"cmd/headgate and tests import cmd/internal/app", "cmd/test/acceptance/proxy_test.go", ours + "cmd/internal/app", ""},
		{"cmd/headgate and tests import cmd/internal/app", "cmd/internal/app/app_test.go", ours + "cmd/internal/app", ""},

		{"fronts never import each other", "cmd/internal/envoy/rls/server.go", ours + "cmd/internal/front/quota", "imports"},
		{"fronts never import each other", "cmd/internal/front/resp/conn.go", ours + "cmd/internal/lease/front", "imports"},
		{"fronts never import each other", "cmd/internal/lease/rules.go", ours + "cmd/internal/lease/front", ""},
		{"fronts never import each other", "cmd/internal/envoy/rls/server_test.go", ours + "cmd/internal/front/quota/deep", "imports"},
		{"fronts never import each other", "cmd/internal/envoy/rls/server.go", ours + "cmd/internal/envoy/rls/descriptor", ""},
		{"fronts never import each other", "cmd/internal/envoy/rls/server.go", ours + "cmd/internal/front", ""},
		{"fronts never import each other", "cmd/internal/app/app.go", ours + "cmd/internal/envoy/rls", ""},

		{"no file is over 500 lines", "guard/guard.go", long, "guard/guard.go: 501 lines"},
		{"no file is over 500 lines", "guard/guard.go", long[1:], ""},
		{"no file is over 500 lines", "guard/guard_test.go", long, ""},
		{"no function is over 70 lines", "guard/guard.go", function(71), "guard/guard.go:2: f has 71 lines"},
		{"no function is over 70 lines", "guard/guard.go", function(70), ""},
		{"no function is over 70 lines", "guard/guard_test.go", function(71), ""},
		{"has a vague name", "guard/helpers.go", "", "guard/helpers.go"},
		{"has a vague name", "guard/util_test.go", "", "guard/util_test.go"},
		{"has a vague name", "guard/guard.go", "", ""},
	}
	proven := make(map[string]bool)
	for _, c := range cases {
		r := findRule(t, c.rule)
		if c.body != "" && !strings.ContainsAny(c.body, " \n") {
			c.body = "import " + strconv.Quote(c.body)
		}
		f, err := parseSource(c.file, []byte("package p\n"+c.body))
		if err != nil {
			t.Fatalf("%s: %s: %v", c.rule, c.file, err)
		}
		got := strings.Join(r.check(f), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s with %.60q: got %q, want %q", c.rule, c.file, c.body, got, c.want)
		}
		proven[r.name] = proven[r.name] || c.want != ""
	}
	for _, r := range slices.Concat(importRules(), sizeRules()) {
		if !proven[r.name] {
			t.Errorf("no case shows that the rule %q can fail: add a case", r.name)
		}
	}
}

func findRule(t *testing.T, end string) rule {
	t.Helper()
	for _, r := range slices.Concat(importRules(), sizeRules()) {
		if strings.HasSuffix(r.name, end) {
			return r
		}
	}
	t.Fatalf("there is no rule %q", end)
	return rule{}
}

// TestLayoutGeneratedFiles checks that generated files may have any size.
func TestLayoutGeneratedFiles(t *testing.T) {
	source := "// Code generated by protoc-gen-go. DO NOT EDIT.\n\npackage p\n\nfunc f() {" + strings.Repeat("\n", 2*maxFileLines) + "}\n"
	f, err := parseSource("internal/proto/quota.pb.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range sizeRules() {
		if found := r.check(f); len(found) > 0 {
			t.Errorf("%s: got %q, want none", r.name, found)
		}
	}
}

// TestLayoutCountsWired checks that a package counts once, and that tests and packages of others do not count.
func TestLayoutCountsWired(t *testing.T) {
	var files []*sourceFile
	for name, imports := range map[string]string{
		"cmd/internal/app/a.go": `"` + modulePath + `/rule"; "os"`, "cmd/internal/app/b.go": `"` + modulePath + `/rule"; "` + modulePath + `"`,
		"cmd/internal/app/b_test.go": `"` + modulePath + `/guard"`, "cmd/internal/ctl/c.go": `"` + modulePath + `/guard"`,
	} {
		f, err := parseSource(name, []byte("package p\nimport ("+imports+")\n"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if wired := wiredBy("cmd/internal/app", files); len(wired) != 2 {
		t.Errorf("got %q, want the root and rule", wired)
	}
}

// TestLayoutFindsFolders checks which words count as folders in the maps and in the tree.
func TestLayoutFindsFolders(t *testing.T) {
	doc := "// Package p says guard/ in a sentence.\n//\n//\tguard/   THE SPINE\n//\t  store/memory/\n//\trule.Key  who asks\n//\thttps://x.y/\n"
	if got, want := foldersInDoc(doc), []string{"guard/", "store/memory/"}; !slices.Equal(got, want) {
		t.Errorf("in doc.go: got %q, want %q", got, want)
	}
	markdown := "In `guard/` and a `/v1/path/`, a plain word/ and `config.yaml`.\n```\nrule/   IDENTIFY\n.       the root\n```\nlimit/ is no code\n| `internal/share/` | divides |\n"
	if got, want := foldersInMarkdown(markdown), []string{"guard/", "internal/share/", "rule/"}; !slices.Equal(got, want) {
		t.Errorf("in Markdown: got %q, want %q", got, want)
	}
	for folder, want := range map[string]bool{"internal/util": true, "store/helpers": true, "impl": true, "guard": false, "utility": false} {
		if got := vagueFolderName(folder); got != want {
			t.Errorf("vagueFolderName(%q) = %v, want %v", folder, got, want)
		}
	}
}
