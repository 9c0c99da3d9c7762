package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/rule"
)

// rowsUnder returns the cells of the first table behind a header row of a page.
func rowsUnder(t *testing.T, page, header string) (rows [][]string) {
	t.Helper()
	_, table, found := strings.Cut(string(read(t, "../../docs/"+page)), "\n"+header)
	if !found {
		t.Fatalf("docs/%s has no table %q", page, header)
	}
	for i, line := range strings.Split(table, "\n") {
		switch {
		case i < 2: // The rest of the header, and the line under it.
		case !strings.HasPrefix(line, "| "):
			return rows
		default:
			cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), " |")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

// firstCells returns the first cells of rows.
func firstCells(rows [][]string) (cells []string) {
	for _, row := range rows {
		cells = append(cells, row[0])
	}
	return cells
}

// TestPartsOfTheDocumentation compares the parts of keys in the documents with those of package rule.
func TestPartsOfTheDocumentation(t *testing.T) {
	var want [][]string
	for _, f := range rule.PartForms() {
		want = append(want, []string{"`" + f.Text + "`", f.Meaning})
		part, err := rule.ParsePart(f.Text)
		if err != nil || !strings.EqualFold(part.String(), f.Text) { // A header gets its usual spelling.
			t.Errorf("ParsePart(%s) gives %s, %v", f.Text, part, err)
		}
	}
	if got := rowsUnder(t, "configuration.md", "| part | value |"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("docs/configuration.md has the parts\n%q, want\n%q", got, want)
	}
}

// TestAlgorithmsOfTheDocumentation compares the tables of algorithms with those of the packages headgate and limit.
func TestAlgorithmsOfTheDocumentation(t *testing.T) {
	var names []string
	for _, a := range headgate.Algorithms() {
		names = append(names, "`"+a.String()+"`")
	}
	for page, header := range map[string]string{"configuration.md": "| word | counts |", "algorithms.md": "| algorithm | bound on"} {
		if got := firstCells(rowsUnder(t, page, header)); !slices.Equal(got, names) {
			t.Errorf("docs/%s has the algorithms %s, want %s", page, got, names)
		}
	}
	var offered []string
	for _, c := range leafAlgorithms() {
		if c.known == "" && c.instead == "" {
			offered = append(offered, "`"+c.word+"`")
		}
	}
	last := len(offered) - 1
	list := strings.Join(offered[:last], ", ") + " or " + offered[last]
	for _, page := range []string{"reference/domains.md", "envoy.md"} {
		if !strings.Contains(string(read(t, "../../docs/"+page)), "| "+list) {
			t.Errorf("docs/%s does not list the algorithms of descriptors: %s", page, list)
		}
	}
}

// TestTraitsOfAlgorithms compares the traits with what Compile accepts.
func TestTraitsOfAlgorithms(t *testing.T) {
	const minute = 60e9
	for _, a := range headgate.Algorithms() {
		traits := limit.TraitsOf(a)
		least := headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 5, Per: minute}}
		if traits.Uses(limit.FieldSubWindows) {
			least.SubWindows = 1
		}
		if _, err := limit.Compile(least); err != nil {
			t.Errorf("%s: %v", a, err)
		}
		for name, set := range map[string]func(*headgate.Policy){
			limit.FieldBurst:         func(p *headgate.Policy) { p.Limit.Burst = 3 },
			limit.FieldSubWindows:    func(p *headgate.Policy) { p.SubWindows = 3 },
			limit.FieldCountRejected: func(p *headgate.Policy) { p.CountRejected = true },
			limit.FieldCountAll:      func(p *headgate.Policy) { p.CountRejected, p.CountAll = true, true },
		} {
			with := least
			set(&with)
			if _, err := limit.Compile(with); (err == nil) != traits.Uses(name) {
				t.Errorf("%s with %s: Compile gives %v, and the traits say that the algorithm uses it: %t", a, name, err, traits.Uses(name))
			}
		}
		if _, ok := headgate.ParseAlgorithm(traits.Synonym); ok {
			t.Errorf("the synonym %s of %s is the name of an algorithm", traits.Synonym, a)
		}
	}
}

// TestSchemesOfTheDocumentation compares the schemes of stores with the documents, the patterns of the schema and the parser.
func TestSchemesOfTheDocumentation(t *testing.T) {
	documented := map[string]string{} // the port of each scheme
	for _, row := range rowsUnder(t, "configuration.md", "| address | meaning | default port |") {
		for _, scheme := range regexp.MustCompile("`([a-z+]+)://").FindAllStringSubmatch(row[0], -1) {
			documented[scheme[1]] = row[2]
		}
	}
	for _, f := range storeFormTable {
		port, found := documented[f.scheme]
		if !found {
			t.Errorf("docs/configuration.md has no row for %s://", f.scheme)
		}
		if !f.tls && f.port != 0 && port != fmt.Sprint(f.port) {
			t.Errorf("docs/configuration.md has the port %q for %s://, want %d", port, f.scheme, f.port)
		}
		delete(documented, f.scheme)
		store, bad := parseStore(f.example)
		if bad != nil || store.scheme() != f.scheme || store.Kind != f.kind || store.TLS != f.tls {
			t.Errorf("%s is read as %+v, %v", f.example, store, bad)
		}
		if !regexp.MustCompile(storePattern).MatchString(f.example) ||
			regexp.MustCompile(perSecondPattern).MatchString(f.example) != (f.kind != KindMemcached) {
			t.Errorf("the patterns do not fit %s", f.example)
		}
	}
	if len(documented) > 0 {
		t.Errorf("docs/configuration.md has rows for %v, which are no schemes", documented)
	}
}
