package gateway

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"
)

// forge sends requests with which a client could avoid its limit, or count as another client.
func (s *service) forge(t *testing.T, limited *client) {
	t.Helper()
	for _, fields := range forgedFields() {
		for _, method := range []string{"GET", "POST"} {
			if a := limited.send(t, method, "/search/x", "", fields...); a.status != http.StatusTooManyRequests {
				t.Errorf("%s with %v gets %d", method, fields, a.status)
			}
		}
	}
	for _, many := range []int{80, 97} { // HAProxy accepts 101, and its HTTP client fewer.
		fields := make([]string, many)
		for i := range fields {
			fields[i] = fmt.Sprintf("X-Many-%d: a", i)
		}
		a := limited.send(t, "GET", "/search/x", "", fields...)
		if a.status != http.StatusTooManyRequests && a.status != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%d fields get %d", many, a.status)
		}
	}
	for _, target := range []string{
		"//search/x", "/search//x", "/x/../search/x", "/search/./x", "/./search/x", "/%73earch/x", "/search/x/../y", "/x/%2e%2e/search/x",
		"/x/.%2E/search/x", "/search%2fx", "/x/..;/search/x", "/search/x;a=b", `/x\..\search/x`, "/search/x?/../../free", "/search/x#/free",
		"/search/x#", "/%73earch/x#\"", "/search/x#y?q=1", "/search/x?q=1#y", "/search/x#/../../../free", "http://free.example/search/x#y",
		"http://free.example/search/x", "/%2e/search/x", "/free/..%2fsearch/x", "//free/../search/x",
	} {
		s.path.Store(new(string))
		a := limited.send(t, "GET", target, "")
		seen := *s.path.Load()
		if clean := path.Clean("/" + seen); a.status == http.StatusOK && (seen == "" || strings.HasPrefix(clean, "/search")) {
			t.Errorf("%s gets %d, and the service sees %q", target, a.status, seen)
		}
	}
	for _, target := range []string{`/a\b`, "/a/..%2fb"} {
		if a := limited.send(t, "GET", target, ""); a.status != http.StatusBadRequest {
			t.Errorf("%s is ambiguous, and gets %d", target, a.status)
		}
	}
	for _, host := range []string{"A.example", "a.example.", "a.example:80", "xn--bcher-kva.example", "127.0.0.1"} {
		if a := limited.send(t, "GET", "/search/x", "", "Host: "+host); a.status != http.StatusTooManyRequests {
			t.Errorf("the host %s gets %d", host, a.status)
		}
	}
}

// spoof sends fields that services take from a gateway. The service must not get the values of a client.
func (s *service) spoof(t *testing.T, client *client) {
	t.Helper()
	names := []string{
		"X-Original-URI", "X-Original-URL", "X-Original-Host", "X-Original-Method", "X-Rewrite-URL", "X-Real-IP", "X-Forwarded-For",
		"X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server",
		"X-Forwarded-Client-Cert", "Forwarded",
	}
	fields := make([]string, len(names))
	for i, name := range names {
		fields[i] = name + ": 192.0.2.99"
	}
	if a := client.send(t, http.MethodGet, "/spoofed", "", fields...); a.status != http.StatusOK || *s.path.Load() != "/spoofed" {
		t.Errorf("a request with fields of gateways gets %d", a.status)
		return
	}
	for name, values := range *s.header.Load() {
		if strings.Contains(strings.Join(values, ","), "192.0.2.99") {
			t.Errorf("the service gets %s: %q of a client", name, values)
		}
	}
}

// forgedFields are fields that a gateway could take for its own.
func forgedFields() [][]string {
	return [][]string{
		{"X-Forwarded-For: 198.51.100.1"},
		{"x-forwarded-for: 198.51.100.1", "X-FORWARDED-FOR: 198.51.100.2"},
		{"X-Original-URI: /free"},
		{"x-original-uri: /free", "X-Original-Uri: /free"},
		{"X-Forwarded-Uri: /free"},
		{"X-Original-Method: OPTIONS", "X-Forwarded-Method: OPTIONS"},
		{"X-Original-Host: free.example", "X-Forwarded-Host: free.example"},
		{"Forwarded: for=198.51.100.1"},
		{"X-Real-IP: 198.51.100.1"},
		{"Headgate-Token: forged"},
		{"Content-Type: application/grpc"},
		{"Connection: X-Original-URI, X-Forwarded-For, X-Forwarded-Uri, X-Original-Method"},
		{"Expect: 100-continue"},
	}
}
