package domain

import (
	"bytes"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/property"
)

// matchOf returns the match of a descriptor.
func matchOf(tb testing.TB, x *Index, entries headgate.Descriptors) *Match {
	tb.Helper()
	var m Match
	if !x.Find(entries, &m) {
		tb.Fatalf("%v has no node", entries)
	}
	return &m
}

func TestKeysOfSharedValues(t *testing.T) {
	x := built(
		t,
		Node{Key: "path", Value: "/a*", ShareThreshold: true, Nodes: []Node{{Key: "user"}}},
		Node{Key: "file", Value: "f*", ShareThreshold: true},
		Node{Key: "file", Value: "g*"},
	)
	key := func(entries headgate.Descriptors) string {
		return string(AppendKey(nil, "shop", entries, matchOf(t, x, entries)))
	}
	for _, row := range []struct {
		story string
		a, b  headgate.Descriptors
		same  bool
	}{
		{"share_threshold counts all values together", d("file", "f1"), d("file", "f2"), true},
		{"share_threshold counts the text of the wildcard too", d("file", "f1"), d("file", "f*"), true},
		{"without share_threshold, each value counts alone", d("file", "g1"), d("file", "g2"), false},
		{"a level above is shared", d("path", "/a1", "user", "u"), d("path", "/a2", "user", "u"), true},
		{"only the level with the wildcard is shared", d("path", "/a1", "user", "u"), d("path", "/a1", "user", "v"), false},
	} {
		if got := key(row.a) == key(row.b); got != row.same {
			t.Errorf("%s: the keys of %v and %v are equal: %t", row.story, row.a, row.b, got)
		}
	}
	sent := d("file", "f*")
	if string(AppendKey(nil, "shop", sent, nil)) == key(sent) {
		t.Error("a limit of the request shares the key of a wildcard")
	}
}

func TestKeyFormat(t *testing.T) {
	long := strings.Repeat("x", 129)
	x := built(t, Node{Key: "a", Nodes: []Node{{Key: "b", Value: "c*", ShareThreshold: true}}})
	entries := d("a", long, "b", "cd")
	got := AppendKey([]byte("p"), "shop", entries, matchOf(t, x, entries))
	sum := digest(long)
	want := "p\x04shop" + "\x01a\x00\xfe" + string(sum[:]) + "\x01b\x01\x02c*"
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestKeysAreDifferent checks that different domains and descriptors never share a key.
func TestKeysAreDifferent(t *testing.T) {
	text := property.OneOf(property.StringMatching(`[ab_]{0,3}`), property.Just(strings.Repeat("a", 128)), property.Just(strings.Repeat("a", 129)))
	draw := func(t *property.T) (string, headgate.Descriptors) {
		domain := text.Draw(t, "domain")
		var entries headgate.Descriptors
		for range property.IntRange(0, 3).Draw(t, "entries") {
			entries = append(entries, headgate.DescriptorEntry{Name: text.Draw(t, "name"), Value: text.Draw(t, "value")})
		}
		return domain, entries
	}
	property.Check(t, func(t *property.T) {
		domain, one := draw(t)
		otherDomain, other := draw(t)
		same := domain == otherDomain && len(one) == len(other)
		for i := range one {
			same = same && one[i] == other[i]
		}
		if got := bytes.Equal(AppendKey(nil, domain, one, nil), AppendKey(nil, otherDomain, other, nil)); got != same {
			t.Fatalf("%q %v and %q %v have the same key: %t, want %t", domain, one, otherDomain, other, got, same)
		}
	})
}

func TestKeyText(t *testing.T) {
	x := built(t, Node{Key: "path", Value: "/a*", ShareThreshold: true, Nodes: []Node{{Key: "my user"}}})
	entries := d("path", "/abc", "my user", strings.Repeat("é\n", 100))
	got := KeyText("shop", entries, matchOf(t, x, entries))
	if want := `shop path=all "/a*" "my user"="` + strings.Repeat(`é\n`, 32) + `"...(300 bytes)`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := KeyText("shop", d("path", "/abc"), nil), `shop path="/abc"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
