package rule

import (
	"strings"
	"testing"

	"github.com/headgate/headgate"
)

// Each case is a host and its canonical form; "" means that the host is refused.
func TestParseHost(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"api.example.com":               "api.example.com",
		"API.Example.COM:8080":          "api.example.com:8080",
		"api.example.com.":              "api.example.com",
		"api.example.com.:80":           "api.example.com:80",
		"api.example.com:":              "api.example.com",
		"api.example.com:0080":          "api.example.com:80",
		"api.example.com:00":            "api.example.com:0",
		"api.example.com:65535":         "api.example.com:65535",
		"a_b-c.example":                 "a_b-c.example",
		"192.0.2.1:80":                  "192.0.2.1:80",
		"[2001:DB8:0:0::1]:80":          "[2001:db8::1]:80",
		"[2001:db8::1]":                 "[2001:db8::1]",
		"[2001:db8::1]:":                "[2001:db8::1]",
		"XN--BCHER-KVA.example":         "xn--bcher-kva.example",
		"api.example.com:80:":           "none",
		"api.example.com:80:x":          "none",
		"api.example.com:65536":         "none",
		"api.example.com:123456":        "none",
		"api.example.com:8a":            "none",
		"api.example.com:-1":            "none",
		":80":                           "none",
		":":                             "none",
		".":                             "none",
		"api.example.com..":             "none",
		".example.com":                  "none",
		"a..b":                          "none",
		"a b":                           "none",
		"a\t":                           "none",
		" a":                            "none",
		`a"b`:                           "none",
		"a,b":                           "none",
		"a/b":                           "none",
		`a\b`:                           "none",
		"u@a":                           "none",
		"a?b":                           "none",
		"a#b":                           "none",
		"%61pi.example.com":             "none",
		"bücher.example":                "none",
		"\xff":                          "none",
		"::1":                           "none",
		"[::1":                          "none",
		"[]":                            "none",
		"[":                             "none",
		"[::1]x":                        "none",
		"[::1]x:80":                     "none",
		"[x%zz]":                        "none",
		"[fe80::1%eth0]":                "none",
		"[fe80::1%25eth0]:80":           "none",
		"[192.0.2.1]":                   "none",
		"[v1.a]":                        "none",
		"[" + strings.Repeat("0", 99):   "none",
		strings.Repeat("a.", 126) + "a": strings.Repeat("a.", 126) + "a",
		strings.Repeat("a.", 127) + "a": "none",
	} {
		got := "none"
		if name, port, ok := ParseHost(text); ok {
			got = JoinHost(name, port)
		}
		if got != want {
			t.Errorf("ParseHost(%q) gives %q, want %q", text, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { ParseHost("api.example.com:8080") }); n != 0 {
		t.Errorf("a host takes %v allocations, want 0", n)
	}
}

// ParseHost returns canonical names: parsing a result again gives the same result.
func FuzzParseHost(f *testing.F) {
	for _, text := range []string{"", "A.example:080", "[::0:1]:", "a.:", "[::ffff:1.2.3.4]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, port, ok := ParseHost(text)
		if !ok {
			return
		}
		joined := JoinHost(name, port)
		again, samePort, ok := ParseHost(joined)
		if !ok || again != name || samePort != port {
			t.Errorf("%q gives %q, and parsing the result gives %q, %q, %v", text, joined, again, samePort, ok)
		}
		if strings.ContainsAny(joined, " \t@/\\?#%\"") || joined != strings.ToLower(joined) {
			t.Errorf("%q gives %q", text, joined)
		}
	})
}

// GET includes HEAD at every place of the index.
func TestGetCoversHead(t *testing.T) {
	all := Rule{Name: "r", Key: anyKey()}
	for _, m := range []Match{{}, {Path: "/a"}, {Path: "/a/*"}, {Hosts: []string{"h"}}} {
		m.Methods = []string{"POST", "GET"}
		all.Match = m
		x, err := NewIndex([]Rule{all})
		if err != nil {
			t.Fatal(err)
		}
		for method, want := range map[string]int{"GET": 1, "HEAD": 1, "POST": 1, "PUT": 0, "head": 0} {
			if got := x.Match(&headgate.Request{Method: method, Path: "/a", Host: "h"}, nil); len(got) != want {
				t.Errorf("%+v, %s: %d rules, want %d", m, method, len(got), want)
			}
		}
	}
}
