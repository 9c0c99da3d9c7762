package prose

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestPatterns checks that each pattern finds its bad text, and not its good text.
func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, p := range allPatterns() {
		if !p.find.MatchString(p.bad) || p.find.MatchString(p.good) {
			t.Errorf("%s: finds %q: %v, want true; finds %q: %v, want false",
				p.name, p.bad, p.find.MatchString(p.bad), p.good, p.find.MatchString(p.good))
		}
		if p.instead == "" {
			t.Errorf("%s has no advice what to write", p.name)
		}
	}
}

// TestCheck checks that a phrase is found in comments, across lines, in messages and in pages.
// It must not be found in code, quotation marks, literals of tests, or test data.
func TestCheck(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"a/a.go": {Data: []byte("package a\n\n// F is for a client\n// whom a rule names. The word `nobody` is code.\n//\n//\tnobody is code\n" +
			"func F() string { return \"nobody waits\" }\n\nvar nobody = \"nobody\"\n")},
		"a/a_test.go":          {Data: []byte("package a\n\nvar text = \"nobody waits\" // nobody waits\n")},
		"page.md":              {Data: []byte("# Page\n\nSee `nobody` and \"nobody\".\n\n```\nnobody\n```\n\nThe store\nis away.\n")},
		"a/testdata/page.md":   {Data: []byte("nobody\n")},
		"a/results/page.md":    {Data: []byte("nobody\n")},
		"a/nobody.txt":         {Data: []byte("nobody\n")},
		"node_modules/page.md": {Data: []byte("nobody\n")},
	}
	faults, err := checkAll(tree, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range faults {
		got = append(got, strings.Join(strings.SplitN(f.String(), ": ", 4)[:3], ": "))
	}
	want := []string{
		`a/a.go:3: whom: "whom"`, `a/a.go:7: nobody: "nobody"`, `a/a_test.go:3: nobody: "nobody"`, `page.md:9: is away: "is away"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestExceptions checks the error for an exception without a fault.
func TestExceptions(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"a/page.md": {Data: []byte("nobody waits\n")},
		"c/page.md": {Data: []byte("no client waits\n")},
	}
	allowed := exception{"a/page.md", "nobody", "nobody waits", "it is a quotation"}
	if faults, err := checkAll(tree, []exception{allowed}); err != nil || len(faults) > 0 {
		t.Errorf("got %v, %v", faults, err)
	}
	want := "the exception for c/page.md is not needed"
	if _, err := checkAll(tree, []exception{allowed, {"c/page.md", "nobody", "", "x"}}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	for _, e := range exceptions() {
		if e.reason == "" {
			t.Errorf("%+v has no reason", e)
		}
	}
}
