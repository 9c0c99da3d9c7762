package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/internal/testkit/race"
)

// schemaOf returns the schema as decoded JSON, and compiled. Compiling checks it against the
// schema of the draft.
func schemaOf(tb testing.TB) (map[string]any, *jsonschema.Schema) {
	tb.Helper()
	text, err := Schema()
	if err != nil {
		tb.Fatal(err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("headgate.schema.json", parsed); err != nil {
		tb.Fatal(err)
	}
	compiled, err := compiler.Compile("headgate.schema.json")
	if err != nil {
		tb.Fatal(err)
	}
	tree, ok := parsed.(map[string]any)
	if !ok {
		tb.Fatalf("the schema decodes to a %T, want an object", parsed)
	}
	return tree, compiled
}

// valueOf decodes a YAML text like an editor does: aliases are resolved, and names are texts.
func valueOf(text []byte) (any, error) {
	var tree any
	if err := yaml.Load(bytes.TrimPrefix(text, []byte(byteOrderMark)), &tree); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(withNames(tree))
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
}

func withNames(tree any) any {
	switch tree := tree.(type) {
	case map[any]any:
		named := make(map[string]any, len(tree))
		for name, inner := range tree {
			named[fmt.Sprint(name)] = withNames(inner)
		}
		return named
	case map[string]any:
		for name, inner := range tree {
			tree[name] = withNames(inner)
		}
		return tree
	case []any:
		for i, inner := range tree {
			tree[i] = withNames(inner)
		}
		return tree
	default:
		return tree
	}
}

// TestSchemaTakesWhatIsRight checks all valid files, and the examples of all documents.
func TestSchemaTakesWhatIsRight(t *testing.T) {
	_, schema := schemaOf(t)
	texts := map[string][]byte{}
	for _, file := range testdata(t, "ok") {
		texts[file] = read(t, file)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("found no documents (error %v)", err)
	}
	for _, page := range append(append(pages, docsPages(t)[1:]...), "../../README.md") {
		for i, example := range examplesOf(t, page) {
			texts[fmt.Sprintf("%s, example %d", page, i+1)] = []byte(example)
		}
	}
	if len(texts) < 40 {
		t.Errorf("found only %d texts, want more", len(texts))
	}
	for name, text := range texts {
		v, err := valueOf(text)
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			t.Errorf("%s: the schema rejects a valid configuration:\n%s\nerror: %v", name, text, err)
		}
	}
}

// examplesOf returns the configurations of a page, with version and rules added.
func examplesOf(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var examples []string
	for _, block := range regexp.MustCompile("(?s)\n```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		example := block[1]
		if !strings.Contains(example, "version: 1") {
			example = "version: 1\n" + example
		}
		if !strings.Contains(example, "rules:") {
			example += "rules: []\n"
		}
		examples = append(examples, example)
	}
	return examples
}

// TestSchemaRefusesFaults checks that the schema finds each fault in the structure of a file.
// beyondSchemaNames lists the faults that it cannot find, with the reason.
func TestSchemaRefusesFaults(t *testing.T) {
	_, schema := schemaOf(t)
	beyond := map[string]string{}
	for why, names := range beyondSchemaNames {
		for name := range strings.FieldsSeq(names) {
			beyond[name] = why
		}
	}
	refused := 0
	for _, file := range testdata(t, "faults") {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		why, listed := beyond[name]
		delete(beyond, name)
		v, err := valueOf(read(t, file))
		if err == nil {
			err = schema.Validate(v)
		}
		switch {
		case err != nil && listed:
			t.Errorf("the schema rejects %s: remove it from beyondSchemaNames (%s)", name, why)
		case err == nil && !listed:
			t.Errorf("the schema accepts %s: extend the schema, or list the file in beyondSchemaNames:\n%s", name, read(t, file))
		case err != nil:
			refused++
		}
	}
	if len(beyond) > 0 {
		t.Errorf("beyondSchemaNames lists missing files: %v", slices.Sorted(maps.Keys(beyond)))
	}
	if refused < 150 {
		t.Errorf("the schema rejects only %d files, want more", refused)
	}
}

// FuzzSchema checks that the schema accepts every valid configuration.
func FuzzSchema(f *testing.F) {
	for _, folder := range []string{"ok", "faults"} {
		for i, file := range testdata(f, folder) {
			if i%race.Fewer(1, 10) > 0 {
				continue
			}
			f.Add(read(f, file))
		}
	}
	_, schema := schemaOf(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := Parse("headgate.yaml", text); err != nil {
			return
		}
		v, err := valueOf(text)
		if err != nil {
			return // JSON cannot express values such as .inf.
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("the schema rejects a valid configuration:\n%s\nerror: %v", text, err)
		}
	})
}
