package objects

import (
	"strings"
	"testing"
)

func TestMergeText(t *testing.T) {
	for _, c := range []struct{ before, patch, want string }{
		{"", "{plan: paid}", "plan: paid\n"},
		{"", `{"hard": {"a": 1, "b": null}}`, "hard: {a: 1}\n"},
		{"mode: shadow\nnote: n\n", `{"mode": "enforce", "note": "true", "limits": ["25/1s"]}`, "mode: enforce\nnote: 'true'\nlimits: [25/1s]\n"},
		{"plan: free\nnote: n\n", "{plan: paid, note: null}", "plan: paid\n"},
		{"note: plan\n", "plan: paid", "note: plan\nplan: paid\n"},
		{"hard: {a: 1, b: 2}\n", "hard: {a: 3, b: null, c: 4}", "hard: {a: 3, c: 4}\n"},
		{"raise: {until: 2030-01-31}\n", "note: x", "raise: {until: 2030-01-31}\nnote: x\n"},
		{"note: n\n", "note: null", "{}\n"},
		{"limits: {a: [{limit: 1/s}]}\n", "limits: {a: [{limit: 2/s}, {limit: 3/m}]}", "limits: {a: [{limit: 2/s}, {limit: 3/m}]}\n"},
		{"a: &x {b: 1}\nc: *x\n", "a: null", "c: {b: 1}\n"},
		{"a: &x {b: 1}\nc: *x\n", "a: {b: 2}", "a: {b: 2}\nc: {b: 1}\n"},
		{"a: &x {b: 1}\nc: *x\n", "c: {d: 2}", "a: {b: 1}\nc: {b: 1, d: 2}\n"},
		{"", "a: &x {b: 1}\nc: *x\n", "a: {b: 1}\nc: {b: 1}\n"},
		{"a: &a " + strings.Repeat("x", 1000) + "\nb: &b [" + strings.Repeat("*a, ", 20) + "]\nc: [" + strings.Repeat("*b, ", 20) + "]\n", "note: x", "too much text"},
		{"", "", "the body is empty"},
		{"", "[a]", "it has no fields"},
		{"", "{", "neither YAML nor JSON"},
		{"", strings.Repeat("{a: ", 40) + strings.Repeat("}", 40), "neither YAML nor JSON"},
	} {
		got, _, err := mergeText(c.before, c.patch)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%.200q with %.200q: got %.200q, want %q", c.before, c.patch, got, c.want)
		}
	}
}
