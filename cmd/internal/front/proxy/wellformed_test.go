package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestCanonicalHost checks that rules and service get the same canonical host, or that the
// request is refused.
func TestCanonicalHost(t *testing.T) {
	for sent, want := range map[string]string{
		"":                          "",
		"a.example":                 "a.example",
		"a.example:8080":            "a.example:8080",
		"A.example.:080":            "a.example:80",
		"a.example:":                "a.example",
		"[2001:DB8::1]:80":          "[2001:db8::1]:80",
		"bücher.example":            "xn--bcher-kva.example",
		"BÜCHER.example:80":         "xn--bcher-kva.example:80",
		"bücher。example":            "xn--bcher-kva.example",
		"ｗｗｗ.example":               "www.example",
		"www.example.com:80:x":      "none",
		"bücher.example:80:":        "none",
		"a\u00adb\u200d.example:x":  "none",
		"\xff.example":              "none",
		`a"b`:                       "none",
		"[x%zz]":                    "none",
		"a\t":                       "none",
		"u@a":                       "none",
		strings.Repeat("ü", 1<<10):  "none",
		"xn--bcher-kva.example:443": "xn--bcher-kva.example:443",
	} {
		got, ok := canonicalHost(sent)
		if !ok {
			got = "none"
		}
		if got != want {
			t.Errorf("canonicalHost(%q) = %q, want %q", sent, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { canonicalHost("api.example.com:8080") }); n != 0 {
		t.Errorf("canonicalHost needs %v allocations, want 0", n)
	}
}

func TestMalformed(t *testing.T) {
	for _, c := range []struct {
		name   string
		header http.Header
		host   string
		want   string
	}{
		{"plain", http.Header{"X-Api-Key": {"a b"}, "X-None": {""}}, "A:80", ""},
		{"a trailing space", http.Header{"X-Api-Key": {"K "}}, "a", badFieldValue},
		{"a tab before the second line", http.Header{"X-Api-Key": {"K", "\tK"}}, "a", badFieldValue},
		{"one blank", http.Header{"X-Api-Key": {" "}}, "a", badFieldValue},
		{"the same host twice", http.Header{"Host": {"a"}}, "a", ""},
		{"another host in a Host field", http.Header{"Host": {"b"}}, "a", ""},
		{"an invalid host name", http.Header{}, "a b", badRequestLine},
		{"an invalid host name in HTTP/1", http.Header{}, `a"b`, badHost},
	} {
		r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/"}, Host: c.host, ProtoMajor: 2}
		l := list(c.header)
		if got := malformed(r, l, "upstream"); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if l.Has("Host") && c.want == "" {
			t.Errorf("%s: rules see a Host field", c.name)
		}
	}
	r := &http.Request{Method: http.MethodGet, URL: &url.URL{}, ProtoMajor: 1}
	if malformed(r, list(nil), "upstream") != "" || r.Host != "upstream" {
		t.Errorf("a request without a host got the host %q", r.Host)
	}
}

func BenchmarkMalformed(b *testing.B) {
	h := http.Header{}
	for i := range 12 {
		h[fmt.Sprintf("X-Header-%d", i)] = []string{"some value of a header"}
	}
	r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/"}, Host: "api.example.com:8080", ProtoMajor: 1}
	l := list(h)
	b.ReportAllocs()
	for b.Loop() {
		malformed(r, l, "upstream")
	}
}
