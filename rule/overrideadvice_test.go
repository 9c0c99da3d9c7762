package rule_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/rule"
)

// TestOverrideAdviceMeansTheText: the form that a fault of an override names for exactly a path overrides that path alone.
func TestOverrideAdviceMeansTheText(t *testing.T) {
	part, err := rule.ParsePart("path")
	if err != nil {
		t.Fatal(err)
	}
	exact := regexp.MustCompile(`or ("(?:[^"\\]|\\.)*") for exactly`)
	for _, text := range []string{"/a/*", "/a*", "/users/{id}", "/api/:id", "/api/[0-9]+", "/api/(a|b)", "/v.+", "/~^/api", "/!/healthz"} {
		_, err := rule.NewOverrides(part, []string{text})
		bad, found := errortype.As[*rule.OverrideError](err)
		if !found {
			t.Errorf("%s: got %v, want a fault", text, err)
			continue
		}
		m := exact.FindStringSubmatch(bad.Fix)
		if m == nil {
			t.Errorf("%s: the fix %q names no form", text, bad.Fix)
			continue
		}
		form, err := strconv.Unquote(m[1])
		if err != nil {
			t.Fatal(err)
		}
		o, err := rule.NewOverrides(part, []string{form})
		if err != nil {
			t.Errorf("%s: the fix names %s, which is at fault: %v", text, form, err)
			continue
		}
		for path, want := range map[string]bool{text: true, "/a/b": false, "/users/5": false, "=" + text: false} {
			if _, got := o.Find(&headgate.Request{Path: path}); got != want {
				t.Errorf("%s as %s: the path %s is found: %t, want %t", text, form, path, got, want)
			}
		}
	}
}
