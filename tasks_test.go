package headgate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// task is a kind of change, and the places that it touches. The places are those that name an example of what the change
// adds.
type task struct {
	name string
	// place finds the lines of code and of pages that name the example. In a page, a line is a row of a table.
	place *regexp.Regexp
	// room are the folders of the example itself, where an addition has a folder of its own.
	room []string
	// files and pages have such lines, and the task touches them. others have such lines too, for another reason: they
	// show the example to readers, or have the same word.
	files, pages, others []string
}

// mostForAlgorithm bounds the files of the first task.
const mostForAlgorithm = 14

// tasks are the changes that the tree should make easy. A new place belongs into a table of the packages below, so that a list
// gets shorter and never longer.
func tasks() []task {
	return []task{
		{
			// The traits of internal/limit are the table. Each package that keeps states has one file.
			name:   "an algorithm, such as sliding_log",
			place:  regexp.MustCompile(`\b[sS]liding_?[lL]og\b|\bsliding log\b|\bluaLog\b|\b([jJ]udge|[tT]ake|[rR]eturn|[rR]efund)Log\b`),
			others: []string{"README.md", "limiter/doc.go"},
			files: []string{
				"cmd/internal/lab/simulate/compare.go", "cmd/internal/rules/rules.go", "doc.go", "guard/quotausage.go", "guard/report/prom/collector.go",
				"internal/limit/log.go", "internal/limit/traits.go", "internal/limit/twin/twin.go",
				"internal/store/script/algorithm.go", "internal/store/script/lua/log.lua", "limit.go", "limiter/state.go",
				"store/memory/blockstate.go", "store/memory/state.go",
			},
			pages: []string{
				"docs/algorithms.md", "docs/architecture.md", "docs/configuration.md", "docs/envoy.md",
				"docs/prefetch.md", "docs/reference/domains.md", "docs/stores.md",
			},
		},
		{
			// storeFormTable of internal/config is the table of schemes, and config/open opens the stores.
			name:  "a store, such as Memcached",
			place: regexp.MustCompile(`\bKindMemcached\b|\bfits\.Memcached\b|store/memcached"|\.Memcached\(\)|\bfunc Memcached\b|memcacheds?://`),
			room:  []string{"store/memcached", "internal/store/meta", "internal/store/offset"},
			files: []string{
				"cmd/internal/rules/store.go", "config/open/opened.go", "internal/config/check/fits.go",
				"internal/config/outcome.go", "internal/config/server.go", "internal/config/shared.go",
				"internal/config/store.go", "internal/config/storeaddress.go", "internal/config/storefields.go",
				"internal/config/storepersecond.go", "internal/config/storeservers.go", "internal/config/storesrv.go",
				"internal/store/fits/fits.go",
			},
			pages: []string{
				"docs/configuration.md", "docs/envoy.md", "docs/stores.md",
			},
		},
		{
			// partTable of rule is the table. The fronts fill the field of headgate.Request, and clients send it.
			name:   "a part of a key, such as mtls_subject",
			place:  regexp.MustCompile(`\bmtls_subject\b|\b(part|Need|Supply)Subjects?\b|\.Subject\b`),
			others: []string{"cmd/internal/access/control.go"},
			files: []string{
				"client/encode.go", "client/fallback.go", "client/guard.go", "cmd/headgate/check.go",
				"cmd/headgate/envoy.go", "cmd/headgate/why.go", "cmd/internal/console/why/order.go", "cmd/internal/console/why/steps.go", "cmd/internal/rules/rules.go", "cmd/internal/explain/request.go",
				"cmd/internal/explain/text.go", "cmd/internal/front/decisions/message.go",
				"cmd/internal/front/decisions/response.go", "cmd/internal/front/httpdecide/message.go",
				"cmd/internal/front/proxy/proxy.go", "cmd/internal/front/resp/decide.go", "cmd/internal/lab/logs/howto.go", "cmd/internal/lab/replay/call.go",
				"cmd/internal/remote/reads.go",
				"cmd/internal/remote/request.go", "internal/config/check/supply.go",
				"internal/proto/headgate/v1/decisions.proto", "middleware/grpclimit/convert.go",
				"middleware/grpclimit/grpclimit.go", "middleware/httplimit/identify.go",
				"middleware/httplimit/middleware.go", "rule/key.go", "rule/keyvalues.go", "rule/needs.go", "rule/part.go", "rule/supply.go",
			},
			pages: []string{"docs/configuration.md", "docs/reference/fair-share.md", "docs/rules.md"},
		},
		{
			// The front has its own folder. cmd/internal/server serves it.
			name:  "a protocol of headgate server, such as that of Redis",
			place: regexp.MustCompile(`front/resp"|\bserver\.resp\b|\b[dils]\.(resp|RESP)\b|\bServerRESP\b|\bnewRESP`),
			room:  []string{"cmd/internal/front/resp"},
			files: []string{
				"cmd/internal/app/app.go", "cmd/internal/app/probe.go", "cmd/internal/server/pressure.go",
				"cmd/internal/server/resp.go", "cmd/internal/server/server.go", "internal/config/server.go",
				"internal/config/serverbound.go",
			},
			pages: []string{"docs/security.md", "docs/server.md"},
		},
		{
			// guard.Answer computes the time, internal/fields rounds it, and the fronts write it.
			name:  "the time of Retry-After",
			place: regexp.MustCompile(`\bfields\.(Seconds|RetrySeconds|RetryAfter|Delay|Pushback)\(|^func (\(a \*Answer\) RetryAfter|Seconds|RetrySeconds|RetryAfter|Delay|Pushback)\(`),
			files: []string{
				"cmd/internal/access/http.go", "cmd/internal/front/resp/writer.go", "cmd/internal/lab/simulate/drive.go", "cmd/internal/envoy/rls/status.go",
				"guard/answer.go", "internal/fields/retry.go", "middleware/grpclimit/answer.go",
				"middleware/grpclimit/refusal.go", "middleware/httplimit/grpc.go", "middleware/httplimit/grpcstatus.go",
				"middleware/httplimit/refuse.go", "middleware/httplimit/response.go",
			},
		},
		{
			// The reader declares the field, and the page has its row.
			name:  "a field of a rule, such as in_flight_ttl",
			place: regexp.MustCompile(`\bin_flight_ttl\b|\bInFlightTTL\b`),
			files: []string{
				"guard/rule.go", "guard/slots.go", "internal/config/checkplans.go", "internal/config/leaserule.go",
				"internal/config/outcome.go",
			},
			pages: []string{
				"docs/configuration.md",
			},
		},
	}
}

// TestTasks compares the list of each task with the source.
func TestTasks(t *testing.T) {
	product := productFiles(t)
	for _, task := range tasks() {
		t.Run(task.name, func(t *testing.T) {
			var files, pages []string
			for _, file := range product {
				page := strings.HasSuffix(file.name, ".md")
				switch {
				case underAny(path.Dir(file.name), task.room...) || slices.Contains(task.others, file.name) || !file.has(task.place):
				case page:
					pages = append(pages, file.name)
				default:
					files = append(files, file.name)
				}
			}
			compare(t, "file", files, task.files)
			compare(t, "page", pages, task.pages)
		})
	}
	if n := len(tasks()[0].files); n > mostForAlgorithm {
		t.Errorf("an algorithm touches %d files, want at most %d", n, mostForAlgorithm)
	}
}

// compare reports the difference between the places in the source and those of a list.
func compare(t *testing.T, what string, got, want []string) {
	t.Helper()
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("the %s %s is a new place: move what it says into the table of the task, or add it to the list", what, name)
		}
	}
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("the %s %s is no place any more: remove it from the list", what, name)
		}
	}
}

// productFile is a file of the product: no test, no kit for tests and no history.
type productFile struct {
	name  string
	lines []string
}

// has reports whether a line matches. In a page, only rows of tables count.
func (f *productFile) has(place *regexp.Regexp) bool {
	page := strings.HasSuffix(f.name, ".md")
	return slices.ContainsFunc(f.lines, func(line string) bool {
		return (!page || strings.HasPrefix(line, "| ")) && place.MatchString(line)
	})
}

// notProduct are folders without places: tests, examples and history.
var notProduct = []string{
	"cmd/test", "cmd/internal/testkit", "docs/decisions", "docs/examples", "docs/evidence", "findings", "internal/dev", "internal/testkit", "store/storetest",
}

// productFiles reads the files of the product.
func productFiles(t *testing.T) (files []productFile) {
	t.Helper()
	err := filepath.WalkDir(".", func(p string, entry fs.DirEntry, err error) error {
		p = filepath.ToSlash(p)
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && (p != "." && strings.HasPrefix(name, ".") || name == "testdata" || slices.Contains(notProduct, p)):
			return fs.SkipDir
		case entry.IsDir() || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".pb.go") || p == "CHANGELOG.md" ||
			!slices.Contains([]string{".go", ".lua", ".md", ".proto", ".sql"}, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(filepath.FromSlash(p))
		files = append(files, productFile{p, strings.Split(string(text), "\n")})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// tellingApart are further files that tell more than two algorithms apart.
var tellingApart = []string{"guard/quotalists.go", "guard/window.go"}

// TestAlgorithmsAreInTheirPlaces checks that only the places of an algorithm, and few other files, tell algorithms apart. A file may
// ask for one or two of them, such as for a leaky bucket, which makes requests wait.
func TestAlgorithmsAreInTheirPlaces(t *testing.T) {
	const few = 2
	places := tasks()[0].files
	var apart []string
	for _, file := range productFiles(t) {
		if filepath.Ext(file.name) != ".go" || slices.Contains(places, file.name) {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file.name, strings.Join(file.lines, "\n"), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if asked := algorithmsAsked(syntax); len(asked) > few {
			apart = append(apart, file.name)
		}
	}
	compare(t, "file that tells algorithms apart", apart, tellingApart)
}

// algorithmsAsked lists the algorithms that a file compares a value with, or that are keys of a literal.
func algorithmsAsked(syntax *ast.File) (asked []string) {
	names := []string{"TokenBucket", "LeakyBucket", "FixedWindow", "SlidingLog", "SlidingWindow", "Ban"}
	add := func(all ...ast.Expr) {
		for _, e := range all {
			s, ok := e.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			if from, ok := s.X.(*ast.Ident); ok && from.Name == "headgate" && slices.Contains(names, s.Sel.Name) && !slices.Contains(asked, s.Sel.Name) {
				asked = append(asked, s.Sel.Name)
			}
		}
	}
	ast.Inspect(syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			add(n.X, n.Y)
		case *ast.CaseClause:
			add(n.List...)
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok {
					add(pair.Key)
				} else {
					add(e)
				}
			}
		}
		return true
	})
	return asked
}
