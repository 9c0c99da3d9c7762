package config_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config"
)

// quotedForm matches the forms that the fix of a fault names.
var quotedForm = regexp.MustCompile(`write ("(?:[^"\\]|\\.)*")|, or ("(?:[^"\\]|\\.)*") for exactly|write (\[[^\]]*\])|If clients send exactly this, write ("(?:[^"\\]|\\.)*")`)

// TestAdviceOfPatternsWorks applies the forms that faults of patterns name, in each place that has such faults: the file is then valid.
func TestAdviceOfPatternsWorks(t *testing.T) {
	const rule = "rules: [{name: a, key: [%s], limits: [5/s], match: {%s}}]"
	const over = "rules: [{name: a, key: [%q], limits: [5/s], overrides: {%%s: {limits: [1/s]}}}]"
	const share = "fair_share: {client: 'header:X-A', capacity: 10, %s}\nrules: []"
	places := map[string]string{
		"path": fmt.Sprintf(rule, "ip", "path: %s"), "header": fmt.Sprintf(rule, "ip", "headers: {X-A: %s}"),
		"descriptor": fmt.Sprintf(rule, "ip", "descriptors: {a: %s}"), "method": fmt.Sprintf(rule, "ip", "methods: [%s]"),
		"host": fmt.Sprintf(rule, "ip", "hosts: [%s]"), "domain": fmt.Sprintf(rule, "ip", "domain: %s"),
		"weights": fmt.Sprintf(share, "weights: {%s: 2}"), "exempt paths": fmt.Sprintf(share, "exempt: {paths: [%s]}"),
		"exempt methods": fmt.Sprintf(share, "exempt: {methods: [%s]}"), "share path": fmt.Sprintf(share, "match: {path: %s}"),
		"tree": "domains: {d: {descriptors: [{key: a, value: %s, limits: 5/s}]}}\nrules: []",
	}
	for _, key := range []string{"path", "host", "method", "header:X-A", "cookie:a", "mtls_subject", "region", "jwt:sub", "ip", "descriptor:a"} {
		places["overrides of "+key] = fmt.Sprintf(over, key)
	}
	texts := []string{
		"/a/*", "/a*", "/users/{id}", "/users/{id}/orders", "/api/:id", "/api/[0-9]+", "/api/(a|b)", "^/v1/.*$", "~^/api", "!/healthz", "/**", "**", "*",
		"*.php", "/files/...", "free*", "!x", "~x", "*bot*", "re:bot", "not:bot", "free|paid", "[0-9]+", `\d+`, "v.+", "{plan}", "=", "", "==", "OPTION",
		"GET|POST", "(GET|POST)", "get", "BREW", "!OPTIONS", "ANY", "*.example.com", "{t}.example.com", "api-*.example.com", ".example.com", "not:a.example",
		"=/a/*", "=free*", "/a//b", "/a/../b", "a b", `"quoted"`, "it's", "192.0.2.*", "192.0.2.1/24",
		"GET /a", "!", "!!x", "not:", "!*.example.com", "!/a|b", "/!/healthz", "^GET$", "GET|GET", "!nl",
	}
	ofMatches := regexp.MustCompile(`to the match|leave \w+ out|list the|as a method|write \[`)
	applied := 0
	for place, file := range places {
		for _, text := range texts {
			forms, fixes := formsIn(t, file, strconv.Quote(text))
			if strings.HasPrefix(place, "overrides") && ofMatches.MatchString(fixes) {
				t.Errorf("%s: the fix of %q is for a match: %s", place, text, fixes)
			}
			for _, form := range forms {
				applied++
				if strings.HasPrefix(form, "[") {
					form = strings.Trim(form, "[]")
				}
				if _, err := parseAt(file, form); err != nil {
					t.Errorf("%s: the fix of %q is %s, and this is at fault: %v", place, text, form, err)
				}
			}
		}
	}
	if applied < 200 {
		t.Errorf("only %d forms", applied)
	}
}

// parseAt parses a file with a value in its place.
func parseAt(file, value string) (*config.Config, error) {
	return config.Parse("f", fmt.Appendf(nil, "version: 1\nidentity: {jwt: {keys: k}, region_db: r}\n"+file+"\n", value))
}

// formsIn gives the forms that the faults of a file name, and the whole texts of their fixes.
func formsIn(t *testing.T, file, value string) (forms []string, fixes string) {
	t.Helper()
	_, err := parseAt(file, value)
	var faults config.Faults
	if err != nil && !errors.As(err, &faults) {
		t.Fatal(err)
	}
	for _, f := range faults {
		fixes += f.Fix + "\n"
		for _, m := range quotedForm.FindAllStringSubmatch(f.Fix, -1) {
			forms = append(forms, m[1]+m[2]+m[3]+m[4])
		}
	}
	return forms, fixes
}
