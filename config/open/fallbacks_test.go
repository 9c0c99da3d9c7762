package open

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/testkit/logs"
)

// TestWarningNamesFallbacks: the log line about an unreachable store names the fallbacks of the
// rules. After a reload it names those of the new rules.
func TestWarningNamesFallbacks(t *testing.T) {
	const rules = "rules:\n- {name: a, match: {path: /a}, key: [all], limits: [1/d], fallback: allow}\n" +
		"- {name: b, match: {path: /b}, key: [all], limits: [1/d], fallback: deny}\n" +
		"- {name: c, match: {path: /c}, key: [all], limits: [1/d], fallback: allow}\n"
	for _, store := range []string{"memcached://127.0.0.1:1", "redis://127.0.0.1:1"} {
		t.Run(store, func(t *testing.T) {
			var logged logs.Text
			head := "version: 1\nstore: " + store + "\nbreaker: {failures: 1, probe: 1m, max_probe: 1m}\nstore_timeout: 5s\n"
			s, g := opened(t, parsed(t, head+rules), Options{Log: logged.Logger()})
			until(t, func() bool { decide(t, g, "/a"); return strings.Contains(logged.String(), "does not answer") })
			if got := logged.String(); !strings.Contains(got, "fallbacks=deny,allow") {
				t.Errorf("the log says %s", got)
			}
			if err := reload(parsed(t, head+strings.ReplaceAll(rules, "fallback: deny", "fallback: allow")), g); err != nil {
				t.Fatal(err)
			}
			if got := s.fallbackNames(); got != "allow" {
				t.Errorf("after the reload the line would name %q, want allow", got)
			}
		})
	}
	if got := fallbackNames(parsed(t, "version: 1\nrules: []\n")); got != "none" {
		t.Errorf("got %q without rules, want none", got)
	}
	for fallbacks, want := range map[string]string{"": "error", "fallback: allow, ": "allow,error", "fallback: error, ": "error"} {
		c := parsed(t, "version: 1\ndomains:\n  a: {"+fallbacks+"descriptors: [{key: k, limits: 1/s}]}\n  b: {descriptors: [{key: k, limits: 1/s}]}\n")
		if got := fallbackNames(c); got != want {
			t.Errorf("domains with %q: got %q, want %q", fallbacks, got, want)
		}
	}
}

// TestWarningNamesFallbacksOfDomains: the line names the fallback of a domain beside those of rules.
func TestWarningNamesFallbacksOfDomains(t *testing.T) {
	var logged logs.Text
	_, g := opened(t, parsed(t, "version: 1\nstore: redis://127.0.0.1:1\nbreaker: {failures: 1, probe: 1m, max_probe: 1m}\nstore_timeout: 5s\n"+
		"rules: [{name: a, match: {path: /a}, key: [all], limits: [1/d], fallback: allow}]\n"+
		"domains: {shop: {descriptors: [{key: k, limits: 1/d}]}}\n"), Options{Log: logged.Logger()})
	until(t, func() bool { decide(t, g, "/a"); return strings.Contains(logged.String(), "does not answer") })
	if got := logged.String(); !strings.Contains(got, "fallbacks=allow,error") {
		t.Errorf("the log says %s", got)
	}
}
