package rule

import (
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/property"
)

// TestLiterals checks that a text behind = matches exactly this text, whatever its characters are, and that texts of the same shape
// without = are faults.
func TestLiterals(t *testing.T) {
	for _, text := range []string{"/users/{id}", "/a/:id", "/a/[0-9]+", "/a|/b", "/search/*", "/!/healthz", "/v1/a$", "/files/...", "/plain"} {
		x := newIndex(t, []Rule{{Name: "a", Match: Match{Path: literalMark + text}, Key: []Part{{kind: partIP}}}})
		for path, want := range map[string]int{text: 1, strings.TrimSuffix(text, "*") + "x": 0, "/users/7": 0, "/": 0, literalMark + text: 0} {
			if got := x.Match(&headgate.Request{Path: path}, nil); len(got) != want {
				t.Errorf("%s matches %s: %v", literalMark+text, path, got)
			}
		}
	}
	m := Match{
		Methods: []string{"=brew", "=GET"}, Hosts: []string{"=Api.example.com"}, Domain: "=shop*",
		Headers: map[string]string{"X-A": "=free*", "X-B": "=*", "X-C": "==a"}, Descriptors: map[string]string{"a": "=!b"},
	}
	x := newIndex(t, []Rule{{Name: "a", Match: m, Key: []Part{{kind: partIP}}}})
	value := func(method, a, b, c string) *headgate.Request {
		return &headgate.Request{
			Method: method, Host: "api.example.com", Path: "/", Domain: "shop*",
			Header: sent{"X-A": a, "X-B": b, "X-C": c}, Descriptors: sent{"a": "!b"}.entries(),
		}
	}
	for _, row := range []struct {
		req  *headgate.Request
		want int
	}{
		{value("brew", "free*", "*", "=a"), 1},
		{value("HEAD", "free*", "*", "=a"), 1},
		{value("BREW", "free*", "*", "=a"), 0},
		{value("GET", "freedom", "*", "=a"), 0},
		{value("GET", "free*", "b", "=a"), 0},
		{value("GET", "free*", "*", "a"), 0},
	} {
		if got := x.Match(row.req, nil); len(got) != row.want {
			t.Errorf("%+v matches %v, want %d", row.req, got, row.want)
		}
	}
}

func TestFoldsKeepLiterals(t *testing.T) {
	f := Folds{Case: true, TrailingSlash: true}
	for pattern, want := range map[string]string{"=/A/{Id}/": "=/a/{id}", "=/A/*": "=/a/*", "/A/*": "/a/*", "/A/": "/a"} {
		if got := f.Pattern(pattern); got != want {
			t.Errorf("Pattern(%q) = %q, want %q", pattern, got, want)
		}
	}
}

// TestLiteralsOfAnyText draws texts, and checks that each is a value without a mark that matches itself, or a fault that names the
// literal, and that the literal matches itself.
func TestLiteralsOfAnyText(t *testing.T) {
	property.Check(t, func(t *property.T) {
		text := property.StringMatching(`[a-c=!~^*{}\[\]()|.+?$:/<>\\d -]{1,8}`).Draw(t, "text")
		if !isHeaderValue(text) || text == "" {
			return
		}
		matches := func(pattern string) (bool, error) {
			x, err := NewIndex([]Rule{{Name: "a", Match: Match{Headers: map[string]string{"X": pattern}}, Key: []Part{{kind: partIP}}}})
			return err == nil && len(x.Match(&headgate.Request{Path: "/", Header: sent{"X": text}}, nil)) == 1, err
		}
		if found, err := matches(literalMark + text); !found || err != nil {
			t.Fatalf("=%q does not match itself: %v", text, err)
		}
		switch found, err := matches(text); {
		case err == nil && text[0] != '=' && !found:
			t.Fatalf("%q is accepted and does not match itself", text)
		case err != nil && text != literalMark && !strings.Contains(err.Error(), quote(literalMark+text)):
			t.Fatalf("the fault of %q names no literal: %v", text, err)
		}
	})
}

// TestTreeTexts checks that a tree's texts are read as they were formatted.
func TestTreeTexts(t *testing.T) {
	property.Check(t, func(t *property.T) {
		text := property.StringMatching(`(re:|not:|wildcard:|=|!)?[a-c=!~^*{}\[\]()|.+?$:/<>\\d -]{1,8}`).Draw(t, "text")
		if name, err := ParseTreeName(FormatTreeName(text)); err != nil || name != text {
			t.Fatalf("the name %q became %q: %v", text, name, err)
		}
		literal := strings.Contains(text, "*") && property.Bool().Draw(t, "literal")
		value, again, err := ParseTreeValue(FormatTreeValue(text, literal))
		if err != nil || value != text || again != literal {
			t.Fatalf("the value %q (%t) became %q (%t): %v", text, literal, value, again, err)
		}
	})
	for text, want := range map[string]string{
		"/search*": "/search*", "10.0.*": "10.0.*", "*.pdf": "*.pdf", "/users/{id}": "=/users/{id}", "/users/{id}/*": "wildcard:/users/{id}/*",
		"=a": "==a", "/users/.*": "wildcard:/users/.*", "auth0|7": "=auth0|7", "a:b": "a:b",
	} {
		if got := FormatTreeValue(text, false); got != want {
			t.Errorf("FormatTreeValue(%q) = %q, want %q", text, got, want)
		}
	}
}
