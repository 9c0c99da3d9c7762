package httpdecide

import (
	"strings"
	"testing"
)

const unsuppliedRules = `
identity: {trusted_proxies: [10.0.0.0/8]}
rules:
- {name: plain, match: {path: /tenant}, key: [all], limits: [3/365d]}
- {name: tenant, match: {path: /tenant}, key: [ip, "descriptor:tenant"], limits: [1/365d]}
- {name: certificate, match: {path: /certificate}, key: [mtls_subject], limits: [1/365d]}
- {name: trial, match: {path: /trial}, key: ["descriptor:tenant"], limits: [1/365d], mode: shadow}
- {name: query, match: {domain: d, path: /query}, key: ["descriptor:tenant"], limits: [1/365d]}
- {name: supplied, match: {path: /supplied}, key: ["header:X-Client-Id", "cookie:a", ip], limits: [1/365d]}
`

// TestUnsuppliedParts: a subrequest that an enforced rule counts by a descriptor or the subject gets an error with the rule, and no rule
// counts it. Gateways must not take it for a missing answer, so with refuse=403 it is a refusal.
func TestUnsuppliedParts(t *testing.T) {
	s := serviceOf(t, unsuppliedRules)
	for uri, want := range map[string]string{
		"/tenant":      `rule "tenant" counts by descriptor:tenant, which GET /v1/decide cannot give`,
		"/certificate": `rule "certificate" counts by mtls_subject, which GET /v1/decide cannot give`,
		"/trial":       "", "/query": "", "/supplied": "", "/other": "",
	} {
		for range 3 {
			for query, status := range map[string]int{"from=original": 500, "from=original&refuse=403": 403} {
				w := s.subrequest(t, query, described("Original", "GET", uri)...)
				if uri == "/supplied" || want == "" && w.Code == 204 {
					continue // The rule of /supplied has its own count.
				}
				stated := w.Header().Get(StatusField)
				if w.Code != status || want == "" || !strings.Contains(w.Body.String(), want) || !strings.Contains(w.Body.String(), "POST /v1/decide") ||
					(stated == "500") != (status == 403) {
					t.Errorf("%s, %s: got %d, Headgate-Status %q, %s", uri, query, w.Code, stated, w.Body)
				}
			}
		}
	}
	if w := s.subrequest(t, "from=original", described("Original", "GET", "/supplied", "X-Client-Id: a", "Cookie: a=b")...); w.Code != 204 {
		t.Errorf("a rule with other parts: got %d %s", w.Code, w.Body)
	}
	body := `{"path": "/tenant", "ip": "192.0.2.1", "descriptors": [{"key": "tenant", "value": "a"}]}`
	if _, got := s.post1(t, body); !strings.Contains(got, `"verdict":"allow"`) {
		t.Errorf("POST after refused subrequests: got %s", got)
	}
}

// TestUnsuppliedFairShare: the same for the client of fair share.
func TestUnsuppliedFairShare(t *testing.T) {
	const rules = "identity: {trusted_proxies: [10.0.0.0/8]}\nfair_share: {capacity: 10, client: 'descriptor:tenant', mode: MODE}\nrules: []\n"
	for mode, status := range map[string]int{"enforce": 500, "shadow": 204} {
		s := serviceOf(t, strings.ReplaceAll(rules, "MODE", mode))
		w := s.subrequest(t, "from=original", described("Original", "GET", "/")...)
		if w.Code != status || status == 500 && !strings.Contains(w.Body.String(), "fair share counts by descriptor:tenant") {
			t.Errorf("%s: got %d %s", mode, w.Code, w.Body)
		}
	}
}
