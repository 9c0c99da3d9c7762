package config

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// docsSectionNames are the headings of the page whose tables list fields, and which.
var docsSectionNames = map[string]string{
	"Top level": "", "`identity`": "identity", "Rules": "rules[]", "`match`": "rules[].match", "`on_exceed`": "rules[].on_exceed",
	"`ban`": "rules[].ban", "`proxy`": "proxy", "`proxy.tls`": "proxy.tls", "`proxy.upstream_tls`": "proxy.upstream_tls", "`admin`": "admin",
	"`fair_share`": "fair_share", "`fair_share.match`": "fair_share.match", "`fair_share.exempt`": "fair_share.exempt",
	"`store_tls`": "store_tls", "`breaker`": "breaker", "`prefetch`": "prefetch",
}

// docsRow is what the page says of a field.
type docsRow struct{ preset, variables string }

// docsRows reads the tables of the page.
func docsRows(t *testing.T) map[string]docsRow {
	t.Helper()
	rows := map[string]docsRow{}
	within, listed := "", false
	for line := range strings.Lines(string(read(t, docs))) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			within, listed = docsSectionNames[heading], heading == "Top level" || docsSectionNames[heading] != ""
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !listed || !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, name := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(cells[0], -1) {
			row := docsRow{}
			if len(cells) > 2 {
				row.preset = strings.TrimSpace(cells[2])
			}
			if len(cells) > 3 {
				row.variables = strings.TrimSpace(cells[3])
			}
			rows[join(within, name[1])] = row
		}
	}
	return rows
}

// TestTablesOfTheDocumentation holds them against the schema, which is the code:
// the same fields, defaults and variables.
func TestTablesOfTheDocumentation(t *testing.T) {
	schema, _ := schemaOf(t)
	rows := docsRows(t)
	fields := map[string]bool{}
	eachField(schema, "", func(path string, field map[string]any) {
		fields[path] = true
		row, found := rows[path]
		_, section := field["properties"]
		text, _ := field["description"].(string)
		switch {
		case strings.Contains(path, ".overrides.") || strings.Contains(path, "[].prefetch.") || section && !found:
			return // They are told of in words.
		case !found:
			t.Errorf("the page has no row for %s", path)
			return
		}
		if preset, ok := field["default"]; ok && fmt.Sprint(preset) != plainDefault(row.preset) {
			t.Errorf("%s: the page says that its default is %s, and it is %v", path, row.preset, preset)
		}
		if _, variable, ok := strings.Cut(strings.TrimSuffix(text, "."), "Variable: "); ok && !strings.Contains(row.variables, "`"+variable+"`") {
			t.Errorf("%s: the page says that its variable is %s, and it is %s", path, row.variables, variable)
		}
	})
	for path := range rows {
		if !fields[path] {
			t.Errorf("the page has a row for %s, which is not there", path)
		}
	}
	if len(rows) < 60 {
		t.Errorf("the page has only %d rows", len(rows))
	}
}

// plainDefault gives the first value of a cell, as the schema writes it.
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
