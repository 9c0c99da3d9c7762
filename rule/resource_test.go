package rule

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headgate/headgate"
)

// pairOf is a request with two headers.
type pairOf map[string]string

func (n pairOf) Lookup(name string) (string, bool) { v, ok := n[name]; return v, ok }

func keyOf(tb testing.TB, texts ...string) []Part {
	tb.Helper()
	parts := make([]Part, len(texts))
	for i, text := range texts {
		p, err := ParsePart(text)
		if err != nil {
			tb.Fatal(err)
		}
		parts[i] = p
	}
	return parts
}

// TestResource has names and the values of clients in them.
func TestResource(t *testing.T) {
	key := keyOf(t, "header:A", "header:B", "ip")
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		text, a, b, want string
	}{
		{"db/orders", "x", "", "db/orders"},
		{"db/{1}", "x", "", "db/x"},
		{"{2}-{1}-{1}", "Az.9", "b_~:@-", "b_~:@--Az.9-Az.9"},
		{"db/{1}", "../admin", "", "db/..%2Fadmin"},
		{"db/{1}", "100%", "", "db/100%25"},
		{"db/{1}", "a\x00 \xff*{1}", "", "db/a%00%20%FF%2A%7B1%7D"},
		{"db/{1}", "", "", "db/%"},
		{"db/{1}", "%", "", "db/%25"},
		{"db/{1}", long, "", "db/%~"},
		{"ip/{3}", "", "", "ip/%"},
	} {
		r, err := ParseResource(c.text, key)
		if err != nil {
			t.Fatal(err)
		}
		got := string(r.Append(nil, &headgate.Request{Header: pairOf{"A": c.a, "B": c.b}}))
		if got != c.want && (!strings.HasSuffix(c.want, "~") || !strings.HasPrefix(got, c.want)) || len(got) > MaxResource {
			t.Errorf("%q with %.20q: %q, want %q", c.text, c.a, got, c.want)
		}
	}
	for text, want := range map[string]string{
		"": "no name", "db/{4}": "no part {4}", "db/{0}": "no place", "db/{": "no place", "db/{x}": "no place", "{12}": "no place",
		strings.Repeat("a", 257): "257 bytes", strings.Repeat("a", 223) + "{1}": "223 bytes",
	} {
		if _, err := ParseResource(text, key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
	if _, err := ParseResource("db/{1}", keyOf(t, "all")); err == nil {
		t.Error("a place for all is no fault")
	}
}

// FuzzResource: two different pairs of values never give one name, and every name is one that servers accept.
func FuzzResource(f *testing.F) {
	f.Add("a", "b/c", "a/b", "c")
	f.Add("%", "", "", "%")
	f.Add(strings.Repeat("a", 200), "x", strings.Repeat("a", 201), "x")
	r, err := ParseResource("db/{1}/{2}", keyOf(f, "header:A", "header:B"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		one := string(r.Append(nil, &headgate.Request{Header: pairOf{"A": a, "B": b}}))
		two := string(r.Append(nil, &headgate.Request{Header: pairOf{"A": c, "B": d}}))
		if (one == two) != (a == c && b == d) {
			t.Errorf("%q %q is %q, and %q %q is %q", a, b, one, c, d, two)
		}
		if len(one) > MaxResource || !utf8.ValidString(one) || strings.Count(one, "/") != 2 {
			t.Errorf("%q %q is %q", a, b, one)
		}
	})
}
