package httpdecide

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

const benchRules = "identity: {trusted_proxies: [10.0.0.0/8]}\nrules: [{name: user, match: {path: /a}, key: [\"header:X-User\"], limits: [4000000000/1d]}]"

// BenchmarkGet decides a subrequest, without the connection.
func BenchmarkGet(b *testing.B) {
	s := serviceOf(b, benchRules)
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, Pattern+"?from=original", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	r.RemoteAddr = "10.0.0.1:5555"
	r.Header["X-Original-Method"], r.Header["X-Original-Uri"], r.Header["X-User"] = []string{"GET"}, []string{"/a"}, []string{"customer-0000001"}
	w := &recorder{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		s.ServeHTTP(w, r)
	}
	if w.status != http.StatusNoContent {
		b.Fatal(w.status)
	}
}

// BenchmarkPost decides one request in JSON, without the connection.
func BenchmarkPost(b *testing.B) {
	s := serviceOf(b, benchRules)
	body := strings.NewReader(`{"method":"GET","path":"/a","headers":{"x-user":"customer-0000001"}}`)
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, Pattern, body)
	if err != nil {
		b.Fatal(err)
	}
	w := &recorder{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		body.Seek(0, io.SeekStart)
		r.Body = io.NopCloser(body)
		clear(w.header)
		s.ServeHTTP(w, r)
	}
	if w.status != http.StatusOK {
		b.Fatal(w.status)
	}
}
