package config

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config/field"
)

// docsSectionNames maps a heading of a page to the section of the fields in its table.
var docsSectionNames = map[string]string{
	"Top level": "", "`identity`": "identity", "Rules": "rules[]", "`match`": "rules[].match", "`on_exceed`": "rules[].on_exceed", "`limits_from`": "rules[].limits_from",
	"`ban`": "rules[].ban", "`proxy`": "proxy", "`cors`": "cors", "`proxy.tls`": "proxy.tls", "`proxy.upstream_tls`": "proxy.upstream_tls", "`admin`": "admin", "`admin.tls`": "admin.tls", "`admin.history`": "admin.history",
	"`throttle.classes`": "throttle.classes[]", "`fair_share`": "fair_share", "`fair_share.match`": "fair_share.match", "`fair_share.exempt`": "fair_share.exempt",
	"`metering`": "metering", "`metering.events`": "metering.events", "`metering.lines`": "metering.lines",
	"`throttle`": "throttle", "`throttle.queue`": "throttle.queue", "`throttle.auto_concurrency`": "throttle.auto_concurrency",
	"`server`": "server", "`server.grpc`": "server.grpc", "`server.grpc.tls`": "server.grpc.tls", "`server.http`": "server.http",
	"`server.http.tls`": "server.http.tls", "`server.resp`": "server.resp", "`server.callers[]`": "server.callers[]", "`server.statsd[]`": "server.statsd[]", "`server.statsd[].rewrites[]`": "server.statsd[].rewrites[]", "`server.limits`": "server.limits", "`server.resp.tls`": "server.resp.tls", "`store_tls`": "store_tls", "`breaker`": "breaker", "`prefetch`": "prefetch",
	"`plans`": "plans.*", "`prices`": "prices.*", "`quotas` of a plan": "plans.*.quotas.*[]", "`customers`": "customers.*", "`raise` of a customer": "customers.*.raise",
	"`source`": "source", "`source.etcd`": "source.etcd", "`source.http`": "source.http", "`source.postgres`": "source.postgres",
	"`lease`": "lease", "`lease.tls`": "lease.tls", "`lease.election`": "lease.election", "`lease.election.tls`": "lease.election.tls", "`lease.limits`": "lease.limits", "`lease.limits.tls`": "lease.limits.tls", "`lease.resources[]`": "lease.resources[]", "`bands` of a resource": "lease.resources[].bands[]", "`lease.holders`": "lease.holders.*",
	"`source.etcd.tls`": "source.etcd.tls", "`source.http.tls`": "source.http.tls", "`source.postgres.tls`": "source.postgres.tls",
	"`server.rate_limit_service`": "server.rate_limit_service", "`domains`": "domains.*", "`descriptors` of a domain": "domains.*.descriptors[]",
}

// docsRow returns the row of the page for fields with the same declaration. It keeps the meaning
// from row, and the default if that depends on other fields. A row of "" is a new row.
func docsRow(row string, fields ...*outline) string {
	cells := strings.Split(strings.Trim(row, "|"), "|")
	if len(fields) == 0 {
		return row
	}
	var names, variables []string
	for _, o := range fields {
		names = append(names, "`"+o.declared.Name+"`")
		if o.variable != "" {
			variables = append(variables, "`"+o.variable+"`")
		}
	}
	outline := fields[0]
	if len(cells) < 3 {
		cells = []string{strings.Join(names, ", "), outline.declared.Text, ""}
	}
	name, meaning, preset := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
	if outline.preset != nil && fmt.Sprint(outline.preset) != plainDefault(preset) {
		preset = fmt.Sprintf("`%v`", outline.preset)
	}
	reload := outline.declared.Reload.String()
	if outline.mapping {
		reload = "" // The fields of a section have reload classes of their own.
	}
	cells = []string{name, meaning, preset, strings.Join(variables, ", "), reload}
	for i, cell := range cells {
		if cells[i] = " " + cell + " "; cell == "" {
			cells[i] = " "
		}
	}
	return "|" + strings.Join(cells, "|") + "|"
}

// TestTablesOfTheDocumentation compares the tables with the declarations: the fields, their
// defaults, variables and reload classes. With -rewrite, as `make docs` runs it, it writes the tables: a new field gets a row with
// the text of its declaration, below the rows of its section.
func TestTablesOfTheDocumentation(t *testing.T) {
	all, err := readOutline()
	if err != nil {
		t.Fatal(err)
	}
	tables := docsTables{fields: map[string]*outline{}, listed: map[string]bool{}, last: map[string]docsPlace{}}
	eachOutline(all, "", func(path string, o *outline) { tables.fields[path] = o })
	pages, written := docsPages(t), map[string][]string{}
	for _, page := range pages {
		written[page] = tables.page(t, page)
	}
	missing := tables.missing()
	for _, path := range missing {
		place, known := tables.last[docsSectionOf(path)]
		if !*rewrite || !known {
			t.Errorf("the pages of the configuration have no row for %s", path)
			continue
		}
		written[place.page] = slices.Insert(written[place.page], place.line+1, place.row(tables.fields[path]))
		tables.moved(place)
	}
	if len(tables.listed) < 60 {
		t.Errorf("the pages of the configuration have only %d rows, want more", len(tables.listed))
	}
	for _, page := range pages {
		text := strings.Join(written[page], "\n") + "\n"
		switch {
		case text == string(read(t, page)):
		case !*rewrite:
			t.Errorf("tables of %s differ from the declarations: run make docs", page)
		default:
			if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// docsTables has the declared fields by their paths, which of them the pages list, and the last row of each section.
type docsTables struct {
	fields map[string]*outline
	listed map[string]bool
	last   map[string]docsPlace
}

// docsPlace is a line of a page, counted from 0. It is in a table without variables if narrow is set.
type docsPlace struct {
	page   string
	line   int
	narrow bool
}

// row returns the row of a new field.
func (p docsPlace) row(o *outline) string {
	row := docsRow("", o)
	if p.narrow {
		row = strings.Join(strings.Split(row, "|")[:4], "|") + "|"
	}
	return row
}

// page returns the lines that a page should have.
func (d *docsTables) page(t *testing.T, page string) []string {
	t.Helper()
	wide, within, inTables := false, "", false
	var lines []string
	for line := range strings.Lines(string(read(t, page))) {
		line = strings.TrimSuffix(line, "\n")
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			within, inTables = docsSectionNames[heading], heading == "Top level" || docsSectionNames[heading] != ""
		}
		switch {
		case strings.HasPrefix(line, "| field |"):
			wide = strings.Contains(line, "| variable |")
			if inTables && wide && !strings.Contains(line, "| reload |") {
				line += " reload |"
			}
		case inTables && wide && strings.Trim(line, "|-") == "" && strings.Count(line, "|") == 5:
			line += "---|"
		case inTables && strings.HasPrefix(line, "| `"):
			outlines := rowFields(t, line, within, d.fields, d.listed)
			d.last[within] = docsPlace{page: page, line: len(lines), narrow: !wide}
			if wide {
				line = docsRow(line, outlines...)
			} else {
				checkNarrow(t, line, outlines)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// missing returns the paths of the fields that have no row, sorted.
func (d *docsTables) missing() []string {
	var paths []string
	for path, o := range d.fields {
		if !d.listed[path] && !o.refused && !o.mapping && !strings.Contains(path, "overrides.") && !strings.Contains(path, "[].prefetch.") &&
			!strings.HasPrefix(path, "customers.*.limits.") && !strings.HasPrefix(path, "customers.*.raise.limits.") &&
			!strings.HasPrefix(path, "throttle.classes[].match.") && !strings.Contains(path, ".match.not.") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// moved notes that a line was inserted below a place.
func (d *docsTables) moved(inserted docsPlace) {
	for section, place := range d.last {
		if place.page == inserted.page && place.line >= inserted.line {
			place.line++
			d.last[section] = place
		}
	}
}

// docsSectionOf returns the section of a field.
func docsSectionOf(path string) string {
	return path[:max(0, strings.LastIndexByte(path, '.'))]
}

// TestNewFieldsGetRows: a field that no page has is missing, and its row has the text of its declaration.
func TestNewFieldsGetRows(t *testing.T) {
	added := &outline{declared: field.Field{Name: "wanted", Reload: field.Restart, Text: "What is wanted."}, preset: "10s", variable: "HEADGATE_PROXY_WANTED"}
	tables := docsTables{fields: map[string]*outline{"proxy.wanted": added}, listed: map[string]bool{}, last: map[string]docsPlace{}}
	if missing := tables.missing(); !slices.Equal(missing, []string{"proxy.wanted"}) || docsSectionOf(missing[0]) != "proxy" {
		t.Errorf("missing are %q", missing)
	}
	const want = "| `wanted` | What is wanted. | `10s` | `HEADGATE_PROXY_WANTED` | restart |"
	if row := (docsPlace{}).row(added); row != want {
		t.Errorf("the row is %q, want %q", row, want)
	}
	if row := (docsPlace{narrow: true}).row(added); row != "| `wanted` | What is wanted. | `10s` |" {
		t.Errorf("the row of a narrow table is %q", row)
	}
	tables.last = map[string]docsPlace{"a": {page: "x.md", line: 3}, "b": {page: "x.md", line: 9}, "c": {page: "y.md", line: 9}}
	tables.moved(docsPlace{page: "x.md", line: 5})
	if tables.last["a"].line != 3 || tables.last["b"].line != 10 || tables.last["c"].line != 9 {
		t.Errorf("the places are %v", tables.last)
	}
}

// rowFields returns the fields that a row names, and adds them to listed.
func rowFields(t *testing.T, line, within string, fields map[string]*outline, listed map[string]bool) []*outline {
	t.Helper()
	var outlines []*outline
	for _, name := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
		path := join(within, name[1])
		listed[path] = true
		o := fields[path]
		if o == nil {
			t.Errorf("the pages of the configuration have a row for %s, which is not a field", path)
			continue
		}
		outlines = append(outlines, o)
		if o.declared.Reload != outlines[0].declared.Reload {
			t.Errorf("%s shares a row with a field of another reload class: write two rows", path)
		}
	}
	return outlines
}

// checkNarrow checks rows of tables without variables. A reload must take their fields.
func checkNarrow(t *testing.T, line string, outlines []*outline) {
	t.Helper()
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for _, o := range outlines {
		if o.variable != "" || o.declared.Reload != field.Taken {
			t.Errorf("%s: the table needs columns for a variable and for a reload", o.declared.Name)
		}
		if len(cells) > 2 && o.preset != nil && fmt.Sprint(o.preset) != plainDefault(cells[2]) {
			t.Errorf("%s: the page has the default %s, want %v", o.declared.Name, cells[2], o.preset)
		}
	}
}

// plainDefault returns the first value of a cell, in the form of the schema.
func plainDefault(cell string) string {
	value := regexp.MustCompile("`\"?([^`\"]*)\"?`").FindStringSubmatch(cell)
	switch {
	case value == nil:
		return ""
	case value[1] == "60s":
		return "1m"
	default:
		return value[1]
	}
}
