package http

import (
	"math/rand/v2"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/internal/config/source"
)

// TestLongObject: an object with many values is too long, without its text being written. The others are read.
func TestLongObject(t *testing.T) {
	for _, row := range []struct {
		values int
		long   bool
	}{{1000, false}, {source.MaxText / 3, false}, {source.MaxText/2 + 20, true}} {
		objects, err := Parse([]byte("customers: {a: [" + strings.Repeat("1,", row.values) + "], b: {plan: free}}"))
		if err != nil || len(objects) != 2 || objects[1].Text != "{plan: free}" {
			t.Fatalf("%d values: %v, %v", row.values, objects, err)
		}
		if got := objects[0].Text; row.long != strings.HasPrefix(got, longText) || row.long != (len(got) == source.MaxText+1) {
			t.Errorf("%d values: the text has %d bytes and begins with %.30q, want too long %v", row.values, len(got), got, row.long)
		}
	}
}

// TestBoundsOfTrees: separators are at least half of the values, and no text is shorter than isLong counts.
func TestBoundsOfTrees(t *testing.T) {
	pieces := []string{",", ":", ": ", "[", "]", "{", "}", "? ", "- ", "-\u0085", "-\u2028", "\n", "\r", "\n ", "\n  ", "a", "b: ", "a: ", `"x"`, "'", "|\n", "!!str ", "~"}
	random := rand.New(rand.NewPCG(5, 16))
	trees := 0
	for range 3_000 {
		var b strings.Builder
		for range 1 + random.IntN(14) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		text := b.String()
		var document yaml.Node
		if yaml.Load([]byte(text), &document) != nil || len(document.Content) != 1 {
			continue
		}
		trees++
		root := document.Content[0]
		values, written := values(root)
		if n := separators([]byte(text)); values > 2*n+1 {
			t.Fatalf("%q has %d values and %d separators", text, values, n)
		}
		marshaled, err := yaml.Marshal(root)
		if err == nil && written > len(marshaled)+16 {
			t.Fatalf("%q: isLong counts %d bytes, and the text has %d: %q", text, written, len(marshaled), marshaled)
		}
	}
	if trees < 100 {
		t.Errorf("only %d of the texts were trees", trees)
	}
}

// values counts the values of a tree, and the bytes that isLong takes for it.
func values(n *yaml.Node) (all, written int) {
	all, written = 1, len(n.Value)+1
	for _, one := range n.Content {
		a, w := values(one)
		all, written = all+a, written+w
	}
	return all, written
}
