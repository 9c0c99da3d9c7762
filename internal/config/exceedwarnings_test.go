package config

import (
	"strings"
	"testing"
)

// TestExceedWarnings: an answer that no client over the limit gets is noted, and one that a client can get is not.
func TestExceedWarnings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, want string }{
		{"on_exceed: {style: html}", ""},
		{"on_exceed: {action: drop}", ""},
		{"on_exceed: {action: drop, style: html}", "action drop sends none"},
		{"on_exceed: {action: drop, style: html}, mode: 'off'", ""},
		{"on_exceed: {action: drop, headers: {X-A: b}}", "action drop sends none"},
		{"on_exceed: {action: degrade, header: X-Degraded, value: low, style: html}", "degrade refuses nothing without hard"},
		{"on_exceed: {action: degrade, header: X-Degraded, value: low, style: html, hard: 9/m}", ""},
		{"on_exceed: {action: degrade, header: X-Degraded, value: low, style: html}, in_flight: 5", ""},
		{"on_exceed: {action: degrade, header: X-Degraded, value: low, style: html}, missing: refuse", ""},
		{"on_exceed: {action: degrade, header: X-Degraded, value: low, style: html}, ban: {after: 99/m, for: 1h}", ""},
	} {
		loaded, err := Parse("a.yaml", []byte("version: 1\nrules: [{name: a, key: [ip], limits: [5/m], "+c.rule+"}]\n"))
		if err != nil {
			t.Fatalf("%s: %v", c.rule, err)
		}
		got := strings.Join(loaded.ExceedWarnings(), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.rule, got, c.want)
		}
	}
}
