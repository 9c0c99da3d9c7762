package rule

import (
	"errors"
	"strings"
	"testing"

	"github.com/headgate/headgate"
)

// TestNameKeyOfEveryPart: for each kind of part, the values that a request has, and what KeyText and KeyNames print
// of them, name the key of the request, with and without the value.
func TestNameKeyOfEveryPart(t *testing.T) {
	long := strings.Repeat("k", 200)
	full := &headgate.Request{
		Method: "GET", Path: `/a "b"`, Host: "api.example.com", IP: addr("192.0.2.1"), XFFIP: addr("2001:db8:1:2:3::4"), UserIP: addr("192.0.2.7"),
		Region: "NL", Subject: "CN=a,O=b", Header: sent{"X-A": "me \"x\"\n", "X-Long": long}, Cookie: sent{"a": `x%41+y`},
		Claims: sent{"a": `header:X-A=`}, Query: sent{"a": "x+y z"}, Descriptors: headgate.Descriptors{{Name: "a", Value: "1"}, {Name: "b", Value: long}},
	}
	words := []string{"header:X-Long", "descriptor:b"}
	for kind := partAll + 1; int(kind) < len(partTable); kind++ {
		word := partTable[kind].word
		switch {
		case kind == partCustomer:
			continue
		case kind.isNetwork():
			word += "/24/48"
		case kind == partHeader:
			word += ":X-A"
		case kind.isVariable():
			word += ":{a}"
		case kind.named():
			word += ":a"
		}
		words = append(words, word)
	}
	for _, word := range words {
		for name, req := range map[string]*headgate.Request{"with the value": full, "without it": {Method: "GET", Path: "/", Host: "h"}} {
			r := &Rule{
				Name: "api", Key: parts(t, "header:X-Tenant", word), Match: Match{Path: "/{a}", Hosts: []string{"{a}.example.com"}},
			}
			if r.Key = r.BoundKey(); r.Key[1].OfMatch() && req != full {
				continue // The request does not match.
			}
			key, _ := r.AppendKey(nil, req)
			printed := string(PlainKeyNames().AppendKey(nil, string(key)))
			for _, text := range []string{strings.TrimPrefix(r.KeyText(req), "api "), printed} {
				value := strings.TrimPrefix(text, "header:X-Tenant=(missing) ")
				_, short, _ := strings.Cut(value, "=")
				for _, given := range []string{value, short} {
					named, err := r.NameKey([]string{"(missing)", given})
					if err != nil || named.Key != string(key) || named.Text != "api "+printed {
						t.Errorf("%s %s: %q names %q (%q), %v, want %q", word, name, given, named.Key, named.Text, err, key)
					}
				}
			}
		}
	}
	all := &Rule{Name: "api", Key: parts(t, "all")}
	want, _ := all.AppendKey(nil, full)
	if named, err := all.NameKey(nil); err != nil || named.Key != string(want) {
		t.Errorf("all: %q, %v, want %q", named.Key, err, want)
	}
}

// TestNameKeyReadsPlainTexts: what an operator writes by hand names the key of the request that sends it.
func TestNameKeyReadsPlainTexts(t *testing.T) {
	for _, c := range []struct {
		part, value string
		req         headgate.Request
	}{
		{"header:X-A", "acme", headgate.Request{Header: sent{"X-A": "acme"}}},
		{"header:X-A", "header:X-A=header:X-A=a", headgate.Request{Header: sent{"X-A": "header:X-A=a"}}},
		{"header:X-A", `"(missing)"`, headgate.Request{Header: sent{"X-A": "(missing)"}}},
		{"header:X-A", `a"b`, headgate.Request{Header: sent{"X-A": `a"b`}}},
		{"ip", "::ffff:192.0.2.1", headgate.Request{IP: addr("192.0.2.1")}},
		{"ip", "2001:db8::9", headgate.Request{IP: addr("2001:db8::1")}},
		{"host", "API.example.com", headgate.Request{Host: "api.example.com"}},
		{"cookie:a", ` "x y"`, headgate.Request{Cookie: sent{"a": "x+y"}}},
	} {
		r := &Rule{Name: "api", Key: parts(t, c.part)}
		want, _ := r.AppendKey(nil, &c.req)
		if named, err := r.NameKey([]string{c.value}); err != nil || named.Key != string(want) {
			t.Errorf("%s %s: %q, %v, want %q", c.part, c.value, named.Key, err, want)
		}
	}
}

// TestNameKeyRefuses: each fault names the part, and the form of the values.
func TestNameKeyRefuses(t *testing.T) {
	r := &Rule{Name: "api", Key: parts(t, "header:X-A", "ip")}
	for _, c := range []struct {
		values []string
		want   string
	}{
		{[]string{"a"}, "number of values needed: 2, given: 1: write a value for each of its parts: header:X-A ip"},
		{[]string{"", "192.0.2.1"}, "part header:X-A: its value is empty: write (missing)"},
		{[]string{`"a`, "192.0.2.1"}, "is not a quoted text"},
		{[]string{"a", "192.0.2.0/24"}, "covers more than one client"},
		{[]string{"a", "home"}, `"home" is not an address`},
	} {
		_, err := r.NameKey(c.values)
		if is := new(KeyError); !errors.As(err, &is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.values, err, c.want)
		}
	}
	r = &Rule{Name: "api", Key: parts(t, "path:{id}"), Match: Match{Path: "/users/{id}"}}
	r.Key = r.BoundKey()
	if _, err := r.NameKey([]string{"a/b"}); err == nil || !strings.Contains(err.Error(), `no path of the rule's match has the value "a/b"`) {
		t.Errorf("a value that no path has: %v", err)
	}
	_, err := (&Rule{Name: "api", Key: parts(t, "cookie:a")}).NameKey([]string{` ""`})
	if err == nil || !strings.Contains(err.Error(), "only blanks and quotes") {
		t.Errorf("an empty cookie: %v", err)
	}
	if _, err = (&Rule{Name: "api", Key: parts(t, "all")}).NameKey([]string{"a"}); err == nil {
		t.Error("a value of the part all is accepted")
	}
}
