package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config/field"
)

// docsSectionNames maps a heading of the page to the section of the fields in its table.
var docsSectionNames = map[string]string{
	"Top level": "", "`identity`": "identity", "Rules": "rules[]", "`match`": "rules[].match", "`on_exceed`": "rules[].on_exceed",
	"`ban`": "rules[].ban", "`proxy`": "proxy", "`proxy.tls`": "proxy.tls", "`proxy.upstream_tls`": "proxy.upstream_tls", "`admin`": "admin",
	"`throttle.classes`": "throttle.classes[]", "`fair_share`": "fair_share", "`fair_share.match`": "fair_share.match", "`fair_share.exempt`": "fair_share.exempt",
	"`metering`": "metering", "`metering.events`": "metering.events", "`metering.lines`": "metering.lines",
	"`throttle`": "throttle", "`throttle.queue`": "throttle.queue", "`throttle.auto_concurrency`": "throttle.auto_concurrency",
	"`server`": "server", "`server.grpc`": "server.grpc", "`server.grpc.tls`": "server.grpc.tls", "`server.http`": "server.http",
	"`server.http.tls`": "server.http.tls", "`server.resp`": "server.resp", "`server.callers[]`": "server.callers[]", "`server.statsd[]`": "server.statsd[]", "`server.statsd[].rewrites[]`": "server.statsd[].rewrites[]", "`server.limits`": "server.limits", "`server.resp.tls`": "server.resp.tls", "`store_tls`": "store_tls", "`breaker`": "breaker", "`prefetch`": "prefetch",
	"`plans`": "plans.*", "`quotas` of a plan": "plans.*.quotas.*[]", "`customers`": "customers.*", "`raise` of a customer": "customers.*.raise",
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
// defaults, variables and reload classes. With -rewrite, it writes the tables.
func TestTablesOfTheDocumentation(t *testing.T) {
	all, err := readOutline()
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]*outline{}
	eachOutline(all, "", func(path string, o *outline) { fields[path] = o })
	listed := map[string]bool{}
	page, wide, within, inTables := string(read(t, docs)), false, "", false
	var lines []string
	for line := range strings.Lines(page) {
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
			outlines := rowFields(t, line, within, fields, listed)
			if wide {
				line = docsRow(line, outlines...)
			} else {
				checkNarrow(t, line, outlines)
			}
		}
		lines = append(lines, line)
	}
	for path, o := range fields {
		if !listed[path] && !o.refused && !o.mapping && !strings.Contains(path, "overrides.") && !strings.Contains(path, "[].prefetch.") &&
			!strings.HasPrefix(path, "customers.*.limits.") && !strings.HasPrefix(path, "customers.*.raise.limits.") &&
			!strings.HasPrefix(path, "throttle.classes[].match.") {
			t.Errorf("docs/configuration.md has no row for %s", path)
		}
	}
	if len(listed) < 60 {
		t.Errorf("docs/configuration.md has only %d rows, want more", len(listed))
	}
	if written := strings.Join(lines, "\n") + "\n"; written != page {
		if !*rewrite {
			t.Fatalf("tables of %s differ from the declarations: go test ./internal/config -run %s -rewrite", docs, t.Name())
		}
		if err := os.WriteFile(docs, []byte(written), 0o600); err != nil {
			t.Fatal(err)
		}
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
			t.Errorf("docs/configuration.md has a row for %s, which is not a field", path)
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
			t.Errorf("%s: docs/configuration.md has the default %s, want %v", o.declared.Name, cells[2], o.preset)
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
