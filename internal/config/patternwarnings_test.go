package config

import (
	"slices"
	"testing"
)

func TestPatternWarnings(t *testing.T) {
	const slash = `: a path that ends in / is only this path, and none below it as in Go's ServeMux: write /files/* for /files and all paths below it, ` +
		"or /files/{$} if only /files/ is meant"
	for _, row := range []struct {
		file string
		want []string
	}{
		{"rules: [{name: a, key: [ip], limits: [5/s], match: {path: /files/*}}]", nil},
		{"rules: [{name: a, key: [ip], limits: [5/s], match: {path: '/files/{$}'}}]", nil},
		{"rules: [{name: a, key: [ip], limits: [5/s], match: {path: '=/files/'}}]", nil},
		{"paths: {ignore_trailing_slash: true}\nrules: [{name: a, key: [ip], limits: [5/s], match: {path: /files/}}]", nil},
		{"rules: [{name: a, key: [ip], limits: [5/s], match: {path: /}}]", []string{`rule "a"` + slash}},
		{"rules: [{name: a, key: [ip], limits: [5/s], match: {path: 'GET /users/{id}/'}}]", []string{`rule "a"` + slash}},
		{"rules: [{name: a, key: [ip], limits: [5/s], match: {path: '/u/{id:[0-9]+}'}}]", nil},
		{
			"rules: [{name: a, key: [ip], limits: [5/s], match: {path: '/{id:[0-9]+}', headers: {X-A: 're:a|b'}}}]",
			[]string{`rule "a": regular expressions (2 in all) take up to 11 steps for each byte that they compare. Those of paths are compared ` +
				`with every request: a template like /users/{id:[0-9]+} is found by an index`},
		},
	} {
		c, err := Parse("f", []byte("version: 1\n"+row.file+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.PatternWarnings(); !slices.Equal(got, row.want) {
			t.Errorf("%s:\n got %q\nwant %q", row.file, got, row.want)
		}
	}
}
