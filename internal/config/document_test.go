package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

func TestLines(t *testing.T) {
	for text, want := range map[string][]string{
		"":               {""},
		"a":              {"a"},
		"a\n":            {"a", ""},
		"a\nb\r\nc\rd":   {"a", "b", "c", "d"},
		"\r\r\n\n":       {"", "", "", ""},
		"a\n\r\nb\n\n\r": {"a", "", "b", "", "", ""},
	} {
		if got := cutLines(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("x", 90) + "HERE" + strings.Repeat("y", 200)
	for _, row := range []struct {
		name, text string
		at         place
		want       string
	}{
		{"a plain line", "a: 1\nb: 2\n", place{2, 4}, "    2 | b: 2\n      |    ^"},
		{"behind the end", "a:", place{1, 9}, "    1 | a:\n      |   ^"},
		{"a tab stays, so that the caret stands below its place", "\ta", place{1, 2}, "    1 | \ta\n      | \t^"},
		{"other scripts count in characters", "größe: ja", place{1, 8}, "    1 | größe: ja\n      |        ^"},
		{"text that runs from right to left is not turned on", "a\u202eb", place{1, 1}, "    1 | a?b\n      | ^"},
		{
			"a long line is shown around the place", long,
			place{1, 91},
			"    1 | ..." + strings.Repeat("x", 66) + "HERE" + strings.Repeat("y", 30) + "...\n      | " + strings.Repeat(" ", 69) + "^",
		},
		{"an address with a password", "redis://u:p@h", place{1, 1}, ""},
		{"no such line", "a", place{7, 1}, ""},
		{"nowhere", "a", place{}, ""},
	} {
		s := &document{name: "f", text: []byte(row.text)}
		if got := s.excerpt(row.at); got != row.want {
			t.Errorf("%s: got\n%s\nwant\n%s", row.name, got, row.want)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"store", "store_timeout", "rules", "log", "on_full", "max_memory"}
	for text, want := range map[string]string{
		"stroe": "store", "Store": "store", "rule": "rules", "storetimeout": "store_timeout", "logs": "log",
		"max-memory": "max_memory", "onfull": "on_full", "quota": "", "": "", "x": "", "listen": "",
		strings.Repeat("store", 1000): "",
	} {
		if got := rule.Nearest(text, words); got != want {
			t.Errorf("%.20q: got %q, want %q", text, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"0B": 0, "1B": 1, "64KiB": 1 << 16, "256MiB": 1 << 28, "3GiB": 3 << 30, "16TiB": 16 << 40} {
		n, _, problem := parseSize(text)
		if n != want || problem != "" {
			t.Errorf("parsing %s: got %d and problem %q", text, n, problem)
		}
		if back := field.FormatSize(n); back != text {
			t.Errorf("formatting %d: got %s, want %s", n, back, text)
		}
	}
	for text, offset := range map[string]int{"": 0, "MiB": 0, "5": 1, "5 MiB": 1, "5mib": 1, "-5B": 0, "1.5GiB": 1} {
		if _, at, problem := parseSize(text); problem == "" || at != offset {
			t.Errorf("%q: %q at %d, want it at %d", text, problem, at, offset)
		}
	}
}

func TestAddresses(t *testing.T) {
	at := func(text string) address {
		t.Helper()
		a, _, problem := parseAddress(text)
		if problem != "" {
			t.Fatalf("%s %s", text, problem)
		}
		return a
	}
	for _, row := range []struct {
		a, b string
		want bool
	}{
		{":80", ":80", true},
		{":80", ":81", false},
		{":0", ":0", false}, // Each listener gets a free port of its own.
		{":80", "127.0.0.1:80", true},
		{"0.0.0.0:80", "10.0.0.1:80", true},
		{"[::]:80", "127.0.0.1:80", true},
		{"127.0.0.1:80", "127.0.0.2:80", false},
		{"127.0.0.1:80", "[::1]:80", false},
		{"localhost:80", "127.0.0.1:80", true},
		{"localhost:80", "10.0.0.1:80", false},
		{"a.example:80", "a.example:80", true},
		{"a.example:80", "b.example:80", false},
	} {
		if got := at(row.a).overlaps(at(row.b)); got != row.want {
			t.Errorf("%s and %s: got %v", row.a, row.b, got)
		}
		if got := at(row.b).overlaps(at(row.a)); got != row.want {
			t.Errorf("%s and %s: got %v", row.b, row.a, got)
		}
	}
}
