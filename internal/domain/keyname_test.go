package domain

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/rule"
)

func TestAppendKeyName(t *testing.T) {
	x := built(t, Node{Key: "path", Value: "/search*", ShareThreshold: true, Leaf: 0, Nodes: []Node{{Key: "user", Leaf: 1}}})
	long := strings.Repeat("v", 200)
	for _, row := range []struct{ entries, want string }{
		{"path=/search/a", `descriptor:path=all "/search*"`},
		{"path=/search/a user=4\"2", `descriptor:path=all "/search*" descriptor:user="4\"2"`},
		{"path=/search/a user=" + long, `descriptor:path=all "/search*" ` + entryName("user", long)},
		{"road=" + long, entryName("road", long)},
	} {
		var texts []string
		for entry := range strings.FieldsSeq(row.entries) {
			name, value, _ := strings.Cut(entry, "=")
			texts = append(texts, name, value)
		}
		var m Match
		x.Find(d(texts...), &m)
		key := AppendKey(nil, "shop", d(texts...), &m)
		if got := string(AppendKeyName(nil, rule.PlainKeyNames(), string(key))); got != row.want {
			t.Errorf("got  %s\nwant %s", got, row.want)
		}
	}
}

// entryName is the text of an entry in a log.
func entryName(name, value string) string {
	return string(rule.PlainKeyNames().AppendEntry(nil, name, value))
}

// TestAppendKeyNameOfAStart checks that the start of a key has the complete entries in it.
func TestAppendKeyNameOfAStart(t *testing.T) {
	key := string(AppendKey(nil, "shop", d("client", "a", "path", "/x"), nil))
	whole := `descriptor:client="a" descriptor:path="/x"`
	for n := range len(key) {
		got := string(AppendKeyName(nil, rule.PlainKeyNames(), key[:n]))
		start, cut := strings.CutSuffix(got, "...")
		if !strings.HasPrefix(whole, strings.TrimSuffix(start, " ")) || !cut && start != "" && start != `descriptor:client="a"` {
			t.Errorf("%d bytes: got %s", n, got)
		}
	}
	if got := string(AppendKeyName(nil, rule.PlainKeyNames(), key)); got != whole {
		t.Errorf("got %s, want %s", got, whole)
	}
}

// FuzzAppendKeyName checks that no text is read as a key with a long name or a panic.
func FuzzAppendKeyName(f *testing.F) {
	f.Add(string(AppendKey(nil, "shop", d("client", "a", "path", strings.Repeat("x", 200)), nil)))
	f.Add("\x01a\xfe")
	plain, hashed := rule.PlainKeyNames(), rule.HashedKeyNames([]byte("s"))
	f.Fuzz(func(t *testing.T, key string) {
		for _, names := range []*rule.KeyNames{plain, hashed} {
			if text := AppendKeyName(nil, names, key); len(text) > 64+64*len(key) {
				t.Fatalf("%q becomes %q", key, text)
			}
		}
	})
}
