package config

import (
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/config/field"
)

// toy is the target of a section with two fields.
type toy struct {
	wait time.Duration
	loud bool
}

// toySection declares two fields that no other code mentions.
func (s *section) toySection(into *toy) {
	t := s.sub(s.declare("toy", field.Taken, "A section of a test."), "{wait: 1s}")
	t.duration(t.declare("wait", field.Restart, "Length of the wait."), &into.wait, time.Millisecond, time.Minute)
	t.boolean(t.declare("loud", field.Taken, "true makes a sound."), &into.loud)
	t.end()
}

// readToy reads a file that has only this section.
func readToy(t *testing.T, text string, variables map[string]string, gathers *outline) (toy, *reader) {
	t.Helper()
	src, bad := newSource("toy.yaml", []byte(text))
	if bad != nil {
		t.Fatal(bad)
	}
	root, bad := src.tree()
	if bad != nil {
		t.Fatal(bad)
	}
	r := &reader{source: src, root: root, environment: func(name string) (string, bool) {
		text, ok := variables[name]
		return text, ok
	}}
	into := toy{wait: time.Second}
	s := r.section(value{node: root}, "write fields")
	s.settable, s.outline = true, gathers
	s.toySection(&into)
	s.end()
	return into, r
}

// TestOneDeclaration checks that one declaration is enough for a field: it gives the field
// a reader, a schema, a variable, a row of the documentation and a reload class.
func TestOneDeclaration(t *testing.T) {
	gathered := &outline{}
	started, r := readToy(t, "toy: {wait: 2s}\n", nil, gathered)
	if started.wait != 2*time.Second || r.result() != nil {
		t.Errorf("reader: got %v, %v", started, r.result())
	}
	_, wrong := readToy(t, "toy: {wait: 2h}\n", nil, nil)
	const fault = "toy.yaml:1:13: toy.wait: \"2h\" is out of range: use 1ms to 1m\n    1 | toy: {wait: 2h}\n      |             ^"
	if err := wrong.result(); err == nil || err.Error() != fault {
		t.Errorf("bounds: got\n%v\nwant\n%s", err, fault)
	}

	set, other := readToy(t, "toy: {loud: true}\n", map[string]string{"HEADGATE_TOY_WAIT": "3s", "HEADGATE_TOY_LOUD": "false"}, nil)
	if set != (toy{wait: 3 * time.Second}) {
		t.Errorf("environment: got %v", set)
	}

	schema, err := gathered.object("")
	if err != nil {
		t.Fatal(err)
	}
	properties := func(form map[string]any, name string) map[string]any {
		fields, _ := form["properties"].(map[string]any)
		field, _ := fields[name].(map[string]any)
		return field
	}
	wait := properties(properties(schema, "toy"), "wait")
	if wait["default"] != "1s" || wait["pattern"] != durationPattern || wait["description"] != "Length of the wait. Variable: HEADGATE_TOY_WAIT." {
		t.Errorf("schema: got %v", wait)
	}
	for name, want := range map[string]string{
		"wait": "| `wait` | Length of the wait. | `1s` | `HEADGATE_TOY_WAIT` | restart |",
		"loud": "| `loud` | true makes a sound. | `false` | `HEADGATE_TOY_LOUD` | taken |",
	} {
		if got := docsRow("", gathered.fields["toy"].fields[name]); got != want {
			t.Errorf("documentation: got\n%s\nwant\n%s", got, want)
		}
	}

	if got := r.fixed.Changed(&other.fixed); !slices.Equal(got, []string{"toy.wait"}) {
		t.Errorf("reload: got %q", got)
	}
	_, same := readToy(t, "toy: {wait: 2000ms, loud: true}\n", nil, nil)
	if got := r.fixed.Changed(&same.fixed); got != nil {
		t.Errorf("reload of equal values: got %q", got)
	}
}
