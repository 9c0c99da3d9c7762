package objects

import (
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/internal/config/source"
)

// FuzzMergeText: a change of one field leaves the values of all others, with aliases replaced, and the result can be changed again. Blank lines
// beside comments may change.
func FuzzMergeText(f *testing.F) {
	for _, text := range []string{
		"plan: paid\nnote: 'a: b'\n", "{\"plan\": \"paid\", \"hard\": {\"a\": 1}}", "a: &x {b: 1}\nc: *x\n", "a: &x [1, 2]\nb: [*x, *x]\n",
		"note: |\n  two\n  lines\n", "note: \"\\u200b\\t\"\n", "? [a]\n: b\n", ":", "note: !!str 12\nraise: {until: 2030-01-31}\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var before map[string]any
		if len(text) > source.MaxText/16 || yaml.Load([]byte(text), &before) != nil || before == nil {
			return
		}
		merged, _, err := mergeText(text, "changed: 1")
		if err != nil {
			return // It says why, and the whole object can be written.
		}
		var after map[string]any
		if err := yaml.Load([]byte(merged), &after); err != nil {
			t.Fatalf("%q became %q: %v", text, merged, err)
		}
		again, _, err := mergeText(merged, "changed: 1")
		var twice map[string]any
		if err != nil || yaml.Load([]byte(again), &twice) != nil || dumped(t, twice) != dumped(t, after) {
			t.Errorf("%q became %q, and that became %q, %v", text, merged, again, err)
		}
		before["changed"] = 1
		if got, want := dumped(t, after), dumped(t, before); got != want {
			t.Errorf("%q became %q, whose values are %q, want %q", text, merged, got, want)
		}
	})
}

// dumped gives values as text, with sorted fields.
func dumped(t *testing.T, values map[string]any) string {
	t.Helper()
	text, err := yaml.Dump(values)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
