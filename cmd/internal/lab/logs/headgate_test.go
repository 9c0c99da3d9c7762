package logs_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/accesslog"
	"github.com/headgate/headgate/cmd/internal/lab/logs"
)

// TestOwnLog writes lines as the proxy does, and reads them: each value comes back, also one with text that is escaped.
func TestOwnLog(t *testing.T) {
	var out bytes.Buffer
	log, err := accesslog.Open(accesslog.Config{Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 3, 1, 12, 0, 0, 250_000_000, time.UTC)
	const hostile = "</script>\"\\\x1bäü\u2028"
	log.Write(&accesslog.Entry{
		Time: began, Duration: 500 * time.Millisecond, Remote: netip.MustParseAddr("2001:db8::7"), Method: "GET", Host: "api.example.com:8443",
		URI: "/v1/product?id=7", Proto: "HTTP/2.0", Status: 429, Verdict: "deny", Reason: "over_limit", Rule: "product",
		DecidedAt: began.UnixMicro() + 100_000, UserIP: netip.MustParseAddr("198.51.100.7"), Region: "NL", Cost: 17, UserAgent: "curl/8",
		Identity: []accesslog.Part{
			{Name: client, Text: []byte("00112233"), Hashed: true},
			{Name: "jwt:sub", Hashed: true, Absent: true},
			{Name: "header:X-Plan", Text: []byte(hostile)},
			{Name: "cookie:session", Text: []byte("-")},
		},
	})
	log.Write(&accesslog.Entry{Time: began, Method: "BAD", URI: "/", Proto: "HTTP/1.1", Status: 400}) // refused before a decision
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := logs.New(&out, logs.Options{Parts: []string{client, "jwt:sub", "header:X-Plan", "header:User-Agent", "cookie:session"}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Kind().Name != "headgate" {
		t.Fatalf("the format is %s", r.Kind().Name)
	}
	var l logs.Line
	if err := r.Next(&l); err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]any{
		"arrival":  {l.Arrival.Time(), began.Add(100 * time.Millisecond)},
		"decided":  {l.DecidedAt, l.Arrival},
		"duration": {l.Duration, 400 * time.Millisecond},
		"status":   {l.Status, 429}, "cost": {l.Cost, int64(17)}, "skip": {l.Skip, logs.Request},
		"client": {string(l.Client), "2001:db8::7"}, "user IP": {string(l.UserIP), "198.51.100.7"}, "region": {string(l.Region), "NL"},
		"method": {string(l.Method), "GET"}, "host": {string(l.Host), "api.example.com:8443"}, "path": {string(l.Path), "/v1/product"},
		"query": {string(l.Query), "id=7"}, "verdict": {string(l.Verdict), "deny"}, "reason": {string(l.Reason), "over_limit"},
		"rule": {string(l.Rule), "product"}, "id": {string(l.Parts[0].Text), "00112233"}, "form of the id": {l.Parts[0].Form, logs.Hashed},
		"form of the subject": {l.Parts[1].Form, logs.Absent}, "plan": {string(l.Parts[2].Text), hostile},
		"form of the plan": {l.Parts[2].Form, logs.Plain}, "agent": {string(l.Parts[3].Text), "curl/8"}, "form of the session": {l.Parts[4].Form, logs.Plain},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
	if err := r.Next(&l); err != nil || l.Skip != logs.Undecided {
		t.Errorf("the second line is %v: %v", l.Skip, err)
	}
}
