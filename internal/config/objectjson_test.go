package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// FuzzJSONNode compares the tree of plain JSON with that of the parser of YAML.
func FuzzJSONNode(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"plan": "paid"}`, `{"plan":"paid","hard":{"api_calls":300}}`, "{\n  \"a\": [1, true, false],\n  \"b\": {}\n}\n", `["a",[],[[]]]`,
		`{"a" : 1 , "a" : 2}`, `{"a": 01}`, `{"a": 1.5}`, `{"a": null}`, `{"a": "it's: # not a comment"}`, `{"": ""}`, ` {"a":-1}`, `{"a":"b"} x`, `{"a":1}#`,
		`{"a":"\u0041"}`, `{"a": 9007199254740993}`, `{"a": "` + strings.Repeat("x", 600) + `"}`, `{"` + strings.Repeat("x", 500) + `": 1}`, `"a"`, "---\n{}",
		`{"a": "1", "b": 0, "c": "~"}`, "{\"a\":\n1}", "{\"a\"\n:1}", `{"a":1,}`, `[,]`, "{\"a\": 1\n}\n\n", "%{}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := jsonNode(text)
		if got == nil {
			return
		}
		src, bad := newSource("f", []byte(text))
		if bad != nil {
			t.Fatalf("%q is read as JSON, and is refused: %v", text, bad)
		}
		want, bad := src.tree()
		if bad != nil {
			t.Fatalf("%q is read as JSON, and YAML refuses it: %v", text, bad)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got\n%s\nwant\n%s", text, shownNode(got), shownNode(want))
		}
	})
}

// shownNode gives the fields of a tree.
func shownNode(n *yaml.Node) string {
	text := fmt.Sprintf("%d:%d kind %d style %d %s %q\n", n.Line, n.Column, n.Kind, n.Style, n.Tag, n.Value)
	for _, one := range n.Content {
		text += shownNode(one)
	}
	return text
}

// TestJSONNode: the usual objects are read without the parser of YAML.
func TestJSONNode(t *testing.T) {
	for text, read := range map[string]bool{
		`{"plan":"paid","limits":{"api_calls":[{"limit":"5/30d","hard":9}]}}`: true, `{"a":"\u0041"}`: false, `{plan: paid}`: false,
		`{"a": "é"}`: false, `{"a": 1e3}`: false, `[`: false, ``: false, `{"a": tru}`: false,
	} {
		if got := jsonNode(text) != nil; got != read {
			t.Errorf("%s: read %v, want %v", text, got, read)
		}
	}
}

// TestSurrogates: JSON writes a character beyond 16 bits as two escapes. YAML refuses them.
func TestSurrogates(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{`{"note": "\ud83c\udfaa x \uD83C\uDFAA"}`, `🎪 x 🎪`},
		{`{"note": "ü \ud83c\udfaa \u00fc \n"}`, "ü 🎪 ü \n"},
		{`{"note": "\\ud83c\\udfaa"}`, `\ud83c\udfaa`},
	} {
		_, node, bad := objectNode(object("customers/a", row.text))
		if bad != nil {
			t.Errorf("%s: %v", row.text, bad)
			continue
		}
		if got := fieldOf(node, "note").Value; got != row.want {
			t.Errorf("%s: got %q, want %q", row.text, got, row.want)
		}
	}
	if _, _, bad := objectNode(object("customers/a", `{"note": "\ud83c"}`)); bad == nil {
		t.Error("half of a pair is accepted")
	}
}
