package proxy

import (
	"net/http"
	"testing"
)

// TestUnwritable checks methods, hosts and queries that HTTP/2 allows but that would break
// an HTTP/1 request line.
func TestUnwritable(t *testing.T) {
	for _, c := range []struct {
		method, host string
		want         bool
	}{
		{"GET", "a", false},
		{"brew-it!", "a.example:80", false},
		{"GET", "[::1]:80", false},
		{"GET", "", false},
		{"GET /secret", "a", true},
		{"GET\t", "a", true},
		{"G(T", "a", true},
		{"GÉT", "a", true},
		{"GET", "a b", true},
		{"GET", "a/b", true},
		{"GET", `a\b`, true},
		{"GET", "u@a", true},
		{"GET", "a?b", true},
		{"GET", "a#b", true},
	} {
		r := &http.Request{Method: c.method, Host: c.host, ProtoMajor: 2}
		if got := unwritable(r, list(r.Header)); got != c.want {
			t.Errorf("unwritable with method %q, host %q = %v, want %v", c.method, c.host, got, c.want)
		}
		r.ProtoMajor = 1 // For HTTP/1, net/http has already checked the request.
		if unwritable(r, list(r.Header)) {
			t.Errorf("unwritable with method %q, host %q is true for HTTP/1", c.method, c.host)
		}
	}
	for _, c := range []struct {
		lengths []string
		want    bool
	}{
		{nil, true},
		{[]string{"5"}, true},
		{[]string{"0"}, true},
		{[]string{"5", "5"}, false},
		{[]string{""}, false},
		{[]string{"+5"}, false},
		{[]string{"-5"}, false},
		{[]string{"5, 5"}, false},
		{[]string{"5.0"}, false},
		{[]string{"0x5"}, false},
	} {
		r := &http.Request{Method: http.MethodPost, Host: "a", ProtoMajor: 2, Header: http.Header{"Content-Length": c.lengths}}
		if got := unwritable(r, list(r.Header)); got == c.want {
			t.Errorf("isLength(%q) = %v, want %v", c.lengths, !got, c.want)
		}
	}
	for sent, want := range map[string]string{"": "", "a=b&c=%zz;d": "a=b&c=%zz;d", "a b  c": "a%20b%20%20c", "\xff": "\xff"} {
		if got := writableQuery(sent); got != want {
			t.Errorf("writableQuery(%q) = %q, want %q", sent, got, want)
		}
	}
}
