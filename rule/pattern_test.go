package rule

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/testkit/race"
)

// TestPatterns shows the language: docs/reference/patterns.md has the same rows.
func TestPatterns(t *testing.T) {
	for _, row := range []struct {
		kind     textKind
		text     string
		yes, no  string // separated by a space; "-" is the empty text
		captured string // by the first text of yes: name=value
	}{
		{textPath, "/users/{id}", "/users/7 /users/a.b", "/users /users/ /users/7/ /users/7/x /user/7", "id=7"},
		{textPath, "/users/{id}/", "/users/7/", "/users/7", "id=7"},
		{textPath, "/users/{id}/files/**", "/users/7/files /users/7/files/ /users/7/files/a/b", "/users/7 /users//files /users/7/filesx", "id=7"},
		{textPath, "/users/{id}/*", "/users/7 /users/7/ /users/7/x/y", "/users /users/", "id=7"},
		{textPath, "/files/{path...}", "/files/a/b /files /files/", "/filesa /", "path=a/b"},
		{textPath, "/{rest...}", "/a/b / /a", "a *", "rest=a/b"},
		{textPath, "/{$}", "/", "/a", ""},
		{textPath, "/posts/{$}", "/posts/", "/posts /posts/a", ""},
		{textPath, "/v1/*/product", "/v1/a/product", "/v1/product /v1//product /v1/a/b/product", ""},
		{textPath, "/a*", "/a /abc", "/a/ /abc/d /b", ""},
		{textPath, "/a**", "/a /abc /a/b /abc/d", "/b /", ""},
		{textPath, "/static/*.js", "/static/a.js /static/.js", "/static/a.jsx /static/a/b.js", ""},
		{textPath, "/{name}.{format}", "/report.2024.pdf", "/report /.pdf /report.", "name=report format=2024.pdf"},
		{textPath, "/{year}-{month}-{slug}", "/2024-11-a-b", "/2024-11 /-11-a", "year=2024 month=11 slug=a-b"},
		{textPath, "/users/{id:[0-9]+}", "/users/77", "/users/a /users/7a /users/", "id=77"},
		{textPath, "/users/{id:[0-9]{4}}/x", "/users/7777/x", "/users/777/x", "id=7777"},
		{textPath, "/v{n:[0-9]+}/x", "/v1/x", "/v/x /va/x", "n=1"},
		{textPath, "=/users/{id}", "/users/{id}", "/users/7", ""},
		{textPath, "re:/v[0-9]+/(a|b)", "/v1/a /v22/b", "/v/a /v1/ab /x/v1/a", ""},
		{textPath, "re:(?i)/API/.*", "/api/x /Api/", "/api", ""},
		{textPath, "=/a{b", "/a{b", "/a", ""},
		{textHost, "{tenant}.example.com", "a.example.com", "example.com a.b.example.com aexample.com", "tenant=a"},
		{textHost, "{Tenant}.EXAMPLE.com", "a.example.com", "example.com", "Tenant=a"},
		{textHost, "{sub...}.example.com", "a.b.example.com x.example.com", "example.com", "sub=a.b"},
		{textHost, "*.example.com", "a.example.com a.b.example.com", "example.com aexample.com", ""},
		{textHost, "**.example.com", "a.example.com a.b.example.com", "example.com", ""},
		{textHost, "*.{t}.example.com", "a.b.example.com a.b.c.example.com", "b.example.com", "t=b"},
		{textHost, "api-*.example.com", "api-1.example.com api-.example.com", "api.example.com api-1.a.example.com", ""},
		{textHost, "a.*.com", "a.b.com", "a.com a.b.c.com", ""},
		{textHost, "re:(a|b)[.]example[.]com", "a.example.com", "c.example.com xa.example.com", ""},
		{textValue, "gold*", "gold gold-1", "-  agold", ""},
		{textValue, "*bot*", "bot Googlebot/2.1", "bat", ""},
		{textValue, "gold**", "gold gold-1", "silver", ""},
		{textValue, "{plan}-eu", "gold-eu", "-eu gold-us", "plan=gold"},
		{textValue, "a/{x}", "a/b/c", "a/", "x=b/c"},
		{textValue, "/users/{id}", "/users/7", "/users/7/x", "id=7"},
		{textValue, "/search/*", "/search /search/a", "/searching", ""},
		{textValue, "*/*", "*/*", "text/html", ""},
		{textValue, "*", "a", "-", ""},
		{textValue, "=*", "*", "a", ""},
		{textValue, "==a", "=a", "a", ""},
		{textValue, "re:free|paid", "free paid", "freed unpaid", ""},
		{textMethod, "P*", "PUT POST", "GET", ""},
		{textMethod, "=BREW", "BREW", "GET", ""},
		{textMethod, "re:PUT|POST", "PUT POST", "PUTS", ""},
	} {
		p, f := compilePattern(row.kind, row.text)
		if f != (fault{}) {
			t.Errorf("%s: %v", row.text, f)
			continue
		}
		for i, text := range strings.Fields(row.yes) {
			if !p.match(emptyText(text)) {
				t.Errorf("%s does not match %s", row.text, text)
			}
			if got := captured(&p, text); i == 0 && got != row.captured {
				t.Errorf("%s captures %q of %s, want %q", row.text, got, text, row.captured)
			}
		}
		for text := range strings.FieldsSeq(row.no) {
			if p.match(emptyText(text)) {
				t.Errorf("%s matches %s", row.text, text)
			}
		}
	}
}

// emptyText returns the text that - stands for.
func emptyText(text string) string {
	if text == "-" {
		return ""
	}
	return text
}

// capturedOf returns what a name of a pattern stands for, if the pattern matches.
func capturedOf(p *pattern, text, name string) (value string, ok bool) {
	c := p.capturing(name)
	if c == nil || !p.match(text) {
		return "", false
	}
	return c.find(text)
}

// captured lists the names of a pattern with their values.
func captured(p *pattern, text string) string {
	var all []string
	for _, name := range p.names() {
		if value, ok := capturedOf(p, text, name); ok {
			all = append(all, name+"="+value)
		}
	}
	return strings.Join(all, " ")
}

func TestPatternsAllocateNothing(t *testing.T) {
	for _, row := range []struct {
		kind       textKind
		text, with string
	}{
		{textPath, "/users/{id}/files/{path...}", "/users/7/files/a/b"},
		{textPath, "/{year}-{month}/{id:[0-9]+}", "/2024-11/77"},
		{textPath, "re:/v[0-9]+/(a|b)", "/v1/b"},
		{textHost, "{tenant}.example.com", "a.example.com"},
		{textValue, "*bot*", "Googlebot/2.1"},
	} {
		p, f := compilePattern(row.kind, row.text)
		if f != (fault{}) || !p.match(row.with) {
			t.Fatalf("%s: %v", row.text, f)
		}
		if n := testing.AllocsPerRun(100, func() { p.match(row.with) }); n != 0 && !race.On { // The pool of an expression's machines loses some on purpose under the race detector.
			t.Errorf("%s: %v allocations", row.text, n)
		}
	}
}

// TestExpressionsAreBounded checks the bound of all expressions together. Each may be compared with every request.
func TestExpressionsAreBounded(t *testing.T) {
	var rules []Rule
	for range 60 {
		rules = append(rules, Rule{Match: Match{Path: "re:/(a{20}){20}"}})
	}
	_, err := NewIndex(named(rules))
	const want = "rule: rules[44].match.path has the expression that makes all of them larger than 20000 instructions: " +
		"use fewer expressions, or templates and literals"
	if first, _, _ := strings.Cut(fmt.Sprint(err), "\n"); first != want {
		t.Errorf("got  %s\nwant %s", first, want)
	}
}
