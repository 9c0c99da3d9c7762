package config

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/domain"
	"github.com/headgate/headgate/internal/testkit/property"
	"github.com/headgate/headgate/rule"
)

// TestAcceptedRulesApply draws configurations, and checks that each rule of an accepted one applies to a request that is made from the text of
// the rule alone, as its author may mean it: a template stands for a value, and a choice for its first part.
func TestAcceptedRulesApply(t *testing.T) {
	accepted := 0
	property.Check(t, func(t *property.T) {
		text := drawnConfiguration(t)
		if c, err := Parse("f", []byte(text)); err == nil {
			accepted++
			applies(t, text, c)
		}
	})
	if accepted == 0 {
		t.Error("no configuration was accepted")
	}
}

// TestRulesOfFilesApply checks the same for the accepted files of this package.
func TestRulesOfFilesApply(t *testing.T) {
	for _, file := range testdata(t, "ok") {
		text := read(t, file)
		c, err := Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		applies(t, string(text), c)
	}
}

// texts of a rule: plain ones, literals behind =, and what looks like a pattern.
var (
	drawnPathParts = []string{"", "v1", "a b", "{id}", "{id...}", ":id", "<id>", "[0-9]+", "(a|b)", "a|b", "*", "**", "a*", ".+", `\d+`, "$", "a$", "...", "~alice", "!x", "x!", "7:get", "$count"}
	drawnPathStart = []string{"", "/", "/", "/", "=/", "=", "!/", "~^/", "^/", "re:/", "not:/", "~ "}
	drawnMethods   = []string{"GET", "OPTIONS", "OPTION", "Get", "PROPFIND", "PURGE", "=BREW", "BREW", "!GET", "*", "ANY", "GET|POST", "GET,POST", "=", "(GET|POST)"}
	drawnHosts     = []string{"api.example.com", "*.example.com", "=api.example.com", "api-*.example.com", "!a.example.com", "{t}.example.com", "~^api", ".example.com", "10.0.0.1", "*"}
	drawnValues    = []string{
		"a", "*", "=*", "free*", "=free*", "*bot*", "!x", "=!x", "~x", "^a", "a$", "re:a", "not:a", "a|b", "[0-9]+", "{x}", "fre?", ">=2", "a b", "text/html; q=0.5", "v.+",
		"/search*", "/users/{id}", "/users/:id", `\d+`, "Mozilla/5.0 (X11; Linux)", "application/vnd.api+json", "==",
	}
	drawnTreeValues = append([]string{"", "/a*b", "wildcard:/{x}/*", "wildcard:a", "10.0.*", "/users/.*", "=/search*"}, drawnValues...)
)

// drawnConfiguration gives a file with one rule and one descriptor of a domain.
func drawnConfiguration(t *property.T) string {
	one := func(label string, from []string) string {
		return fmt.Sprintf("%q", property.SampledFrom(from).Draw(t, label))
	}
	var match []string
	if property.Bool().Draw(t, "has a path") {
		parts := property.SliceOfN(property.SampledFrom(drawnPathParts), 1, 3).Draw(t, "parts")
		match = append(match, fmt.Sprintf("path: %q", property.SampledFrom(drawnPathStart).Draw(t, "start")+strings.Join(parts, "/")))
	}
	if property.Bool().Draw(t, "has methods") {
		match = append(match, "methods: ["+one("method", drawnMethods)+"]")
	}
	if property.Bool().Draw(t, "has hosts") {
		match = append(match, "hosts: ["+one("host", drawnHosts)+"]")
	}
	if property.Bool().Draw(t, "has headers") {
		match = append(match, "headers: {X-A: "+one("header", drawnValues)+"}")
	}
	if property.Bool().Draw(t, "has descriptors") {
		match = append(match, "descriptors: {k: "+one("entry", drawnValues)+"}")
	}
	text := "version: 1\nrules: [{name: a, key: [all], limits: [5/s], match: {" + strings.Join(match, ", ") + "}}]\n"
	if property.Bool().Draw(t, "has a domain") {
		text += "domains: {shop: {descriptors: [{key: k, limits: 5/s, value: " + one("value", drawnTreeValues) + "}]}}\n"
	}
	return text
}

// written has the parts of a file that say what a rule applies to.
type writtenFile struct {
	Rules []struct {
		Match struct {
			Path, Domain, Model  string
			Methods, Hosts       []string
			Headers, Descriptors map[string]string
			JSON                 map[string]string `yaml:"json"`
		}
	}
	Domains map[string]struct{ Descriptors []writtenNode }
}

type writtenNode struct {
	Key, Value  string
	Descriptors []writtenNode
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// applies checks that every rule of a file applies to the request that its text says.
func applies(t fataler, text string, c *Config) {
	t.Helper()
	var file writtenFile
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	all := make([]rule.Rule, len(c.Rules))
	for i := range c.Rules {
		all[i] = c.Rules[i].Rule
		all[i].Match.Path = c.Folds.Pattern(all[i].Match.Path)
	}
	index, err := rule.NewIndex(all)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for i := range file.Rules {
		m := &file.Rules[i].Match
		req := headgate.Request{Method: "POST", Host: "some.example.org", Path: meantPath(m.Path), Header: meantValues{}}
		fields := meantValues{}
		for name, value := range m.JSON {
			fields[name] = meantText(value)
		}
		if m.Model != "" {
			fields["model"] = meantText(m.Model)
		}
		req.Body = &headgate.Body{Fields: fields}
		if m.Domain != "" {
			req.Domain = meantText(m.Domain)
		}
		if len(m.Methods) > 0 {
			req.Method = meantText(m.Methods[0])
		}
		if len(m.Hosts) > 0 {
			req.Host, _, _ = rule.ParseHost(meantText(m.Hosts[0]))
		}
		headers := meantValues{}
		for name, value := range m.Headers {
			headers[http.CanonicalHeaderKey(name)] = meantText(value)
		}
		req.Header = headers
		for name, value := range m.Descriptors {
			req.Descriptors = append(req.Descriptors, headgate.DescriptorEntry{Name: name, Value: meantText(value)})
		}
		if clean, err := rule.CleanPath(req.Path, "", true); err != nil || clean != req.Path {
			t.Fatalf("no request has the path %q, from\n%s", req.Path, text)
		}
		req.Path = c.Folds.Path(req.Path)
		if matched := index.Match(&req, nil); !slices.Contains(matched, i) {
			t.Fatalf("rules[%d] does not apply to %+v, made of\n%s", i, req, text)
		}
	}
	appliesTrees(t, text, c, file)
}

// appliesTrees checks that each descriptor of a tree is found for entries that its text says.
func appliesTrees(t fataler, text string, c *Config, file writtenFile) {
	t.Helper()
	for name, tree := range file.Domains {
		at := slices.IndexFunc(c.Domains, func(d guard.Domain) bool { return d.Name == strings.TrimPrefix(name, "=") })
		if at < 0 {
			t.Fatalf("there is no domain %q in\n%s", name, text)
		}
		index, _, err := c.Domains[at].Index()
		if err != nil {
			t.Fatalf("%v", err)
		}
		var walk func(level []writtenNode, above headgate.Descriptors)
		walk = func(level []writtenNode, above headgate.Descriptors) {
			for _, n := range level {
				entries := append(slices.Clip(above), headgate.DescriptorEntry{Name: strings.TrimPrefix(n.Key, "="), Value: meantText(n.Value)})
				var m domain.Match
				if !index.Find(entries, &m) {
					t.Fatalf("no descriptor of %q applies to %v, made of\n%s", name, entries, text)
				}
				walk(n.Descriptors, entries)
			}
		}
		walk(tree.Descriptors, nil)
	}
}

// meantValues are headers.
type meantValues map[string]string

func (v meantValues) Lookup(name string) (string, bool) {
	value, found := v[name]
	return value, found
}

// Signs of patterns, and the texts that they may stand for.
var meantSigns = []struct {
	sign *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`^(re:|wildcard:|[~^ ]|\.\*)+`), ""},
	{regexp.MustCompile(`\$$`), ""},
	{regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]\+?|\\d\+?|<[^>]*>`), "7"},
	{regexp.MustCompile(`/:[a-z]+`), "/7"},
	{regexp.MustCompile(`\(([^|)]*)\|[^)]*\)`), "$1"},
	{regexp.MustCompile(`[|,].*`), ""},
	{regexp.MustCompile(`(^|[^a-z0-9])\.[*+]`), "${1}x"},
	{regexp.MustCompile(`\*+`), "x"},
	{regexp.MustCompile(`\?`), "e"},
	{regexp.MustCompile(`^>=`), ""},
	{regexp.MustCompile(`/\.\.\.$`), "/x"},
}

// meantText gives a text that an author may mean: the text itself behind =, and otherwise one that the pattern stands for.
func meantText(text string) string {
	if literal, marked := strings.CutPrefix(text, "="); marked {
		return literal
	}
	if expression, marked := strings.CutPrefix(text, "re:"); marked {
		return meantExpression(expression)
	}
	if wild, marked := strings.CutPrefix(text, "wildcard:"); marked && strings.Contains(wild, "*") {
		return strings.ReplaceAll(wild, "*", "x") // Only * has a meaning.
	}
	if strings.HasPrefix(text, "!") || strings.HasPrefix(text, "not:") {
		return "another"
	}
	if plain := regexp.MustCompile(`^[a-z]+/[a-z0-9]|^Mozilla`); plain.MatchString(text) {
		return text // A type of content, or a program.
	}
	for _, one := range meantSigns {
		text = one.sign.ReplaceAllString(text, one.text)
	}
	if text == "" {
		return "any"
	}
	return text
}

// meantExpression gives a text that an expression matches as a whole. Braces and angles are no variables in it.
func meantExpression(text string) string {
	for _, one := range []struct {
		sign *regexp.Regexp
		text string
	}{
		{regexp.MustCompile(`\(([^|)]*)(\|[^)]*)?\)`), "$1"},
		{regexp.MustCompile(`\|.*`), ""},
		{regexp.MustCompile(`\[[^\]]*\]\+?|\\d\+?`), "7"},
		{regexp.MustCompile(`([a-z0-9])\*|\?$`), "$1"},
		{regexp.MustCompile(`\.[*+]?`), "x"},
	} {
		text = one.sign.ReplaceAllString(text, one.text)
	}
	return text
}

// meantPath is meantText for a path.
func meantPath(text string) string {
	switch {
	case text == "":
		return "/any"
	case strings.HasPrefix(text, "="):
		return text[1:]
	case strings.HasPrefix(text, "!") || strings.HasPrefix(text, "/!") || strings.HasPrefix(text, "not:"):
		return "/another"
	}
	return meantText(text)
}
