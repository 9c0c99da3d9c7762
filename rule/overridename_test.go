package rule

import (
	"strings"
	"testing"
)

// TestNameOverride: the value of an override is found as that of a key, and finds the requests of the value alone.
func TestNameOverride(t *testing.T) {
	for _, c := range []struct{ part, text, want, fault string }{
		{"header:X-Id", "acme", "acme", ""},
		{"header:X-Id", `header:X-Id="a b"`, "a b", ""},
		{"header:X-Id", "gold-*", "gold-*", ""},
		{"header:X-Id", "=x", "=x", ""},
		{"ip", "192.0.2.7", "192.0.2.7/32", ""},
		{"ip", "2001:db8::1", "2001:db8::/64", ""},
		{"cookie:id", "a%b", "a%b", ""},
		{"path", "/a", "/a", ""},
		{"method", "GET", "GET", ""},
		{"host", "API.example", "api.example", ""},
		{"header:X-Id", "(missing)", "", "no value that could have limits"},
		{"header:X-Id", "sha256:" + strings.Repeat("ab", 16), "", "no value that could have limits"},
		{"ip", "10.0.0.0/8", "", "10.0.0.0/8"},
		{"all", "x", "", "share one key"},
	} {
		part, err := ParsePart(c.part)
		if err != nil {
			t.Fatal(err)
		}
		r := &Rule{Name: "r", Key: []Part{part}}
		got, err := Folds{}.NameOverride(r, c.text)
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s %s: %v", c.part, c.text, err)
			}
			continue
		}
		if err != nil || got.Override.Value != c.want || got.Override.Many {
			t.Errorf("%s %s: %+v, %v, want %s", c.part, c.text, got, err, c.want)
			continue
		}
		again, err := Folds{}.OfOverride(r, got.Override.Value)
		if err != nil || again.Override != got.Override || !SameOverride(part, got.Override, again.Override) {
			t.Errorf("%s %s: read again, it is %+v, %v", c.part, c.text, again, err)
		}
	}
}
