package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// descriptorLine is a decision on a descriptor in the log.
type descriptorLine struct {
	domain, rule, descriptors string
	hits                      int64
	code                      string
}

// descriptorLines returns the decisions on descriptors in the log of an instance.
func descriptorLines(i *instance) []descriptorLine {
	var all []descriptorLine
	for _, l := range i.lines() {
		if l.Msg == "decision" {
			all = append(all, descriptorLine{l.Domain, l.Rule, l.Descriptors, l.Hits, l.Code})
		}
	}
	return all
}

// askJSON asks headgate server about one descriptor with one entry, and returns the status.
func askJSON(t *testing.T, i *instance, domain, key, value string, hits int) int {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"domain": domain, "hitsAddend": hits,
		"descriptors": []any{map[string]any{"entries": []any{map[string]string{"key": key, "value": value}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post("http://"+i.HTTP+"/json", "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// TestDecisionLogOfTheServer: all decisions of trees and of rules are logged with domain, rule,
// descriptors, hits and code, and ctl top lists the refused descriptors.
func TestDecisionLogOfTheServer(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "keys.secret")
	if err := os.WriteFile(secret, []byte(keysSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for keys, name := range map[string]func(value string) string{
		"plain":                             func(value string) string { return fmt.Sprintf("descriptor:client=%q", value) },
		"hash, keys_secret_file: " + secret: func(value string) string { return keyName("descriptor:client", value) },
	} {
		i := launchServer(t, file(t, `version: 1
log: {decisions: all, keys: `+keys+`}
rules:
  - {name: others, match: {domain: other}, key: ["descriptor:client"], limits: ["1/1h"]}
server: {grpc: off, http: "127.0.0.1:0"}
domains: {shop: {descriptors: [{key: client, limits: 2/1h}]}}
`+adminAnywhere))
		for _, row := range []struct {
			domain, client string
			hits, want     int
		}{
			{"shop", "a\n", 2, http.StatusOK},
			{"shop", "a\n", 1, http.StatusTooManyRequests},
			{"other", "b", 1, http.StatusOK},
			{"other", "b", 1, http.StatusTooManyRequests},
			{"other", "b", 1, http.StatusTooManyRequests},
		} {
			if got := askJSON(t, i, row.domain, "client", row.client, row.hits); got != row.want {
				t.Errorf("%+v: got status %d", row, got)
			}
		}
		want := []descriptorLine{
			{"shop", "shop.client", name("a\n"), 2, "OK"},
			{"shop", "shop.client", name("a\n"), 1, "OVER_LIMIT"},
			{"other", "others", name("b"), 1, "OK"},
			{"other", "others", name("b"), 1, "OVER_LIMIT"},
			{"other", "others", name("b"), 1, "OVER_LIMIT"},
		}
		eventually(t, "the lines of all decisions", func() bool { return len(descriptorLines(i)) >= len(want) })
		if got := descriptorLines(i); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("keys %s: got\n%v\nwant\n%v", keys, got, want)
		}
		_, table, _ := call(t, "ctl", "top", "--admin", i.Admin)
		lines := strings.Split(table, "\n")
		if len(lines) < 4 || strings.Join(strings.Fields(lines[1]), " ") != "2 0 others "+name("b") ||
			strings.Join(strings.Fields(lines[2]), " ") != "1 0 shop.client "+name("a\n") {
			t.Errorf("keys %s: ctl top prints\n%s", keys, table)
		}
	}
}

// TestDecisionLogIsSampled: without log.decisions, a bounded number of refusals is logged.
func TestDecisionLogIsSampled(t *testing.T) {
	t.Parallel()
	i := launchServer(t, file(t, `version: 1
rules: []
server: {grpc: off, http: "127.0.0.1:0"}
domains: {shop: {descriptors: [{key: client, limits: 1/1h}]}}
`+adminAnywhere))
	for range 200 {
		askJSON(t, i, "shop", "client", "a", 1)
	}
	if status := i.stop(); status != 0 {
		t.Errorf("status %d", status)
	}
	got := descriptorLines(i)
	suppressed := 0
	for _, l := range i.lines() {
		suppressed += l.Suppressed
	}
	if len(got) == 0 || len(got)+suppressed != 199 || suppressed == 0 {
		t.Errorf("got %d lines and %d suppressed, want 199 together", len(got), suppressed)
	}
	for _, line := range got {
		if line.code != "OVER_LIMIT" || strings.Contains(line.descriptors, `"a"`) {
			t.Errorf("got the line %+v, want a refusal with a hash", line)
		}
	}
}

// TestOutageNamesFallbacksOfDomains: the line about an unreachable store names the fallback of the domain.
func TestOutageNamesFallbacksOfDomains(t *testing.T) {
	t.Parallel()
	i := launchServer(t, file(t, `version: 1
store: redis://127.0.0.1:1
breaker: {failures: 1}
server: {grpc: off, http: "127.0.0.1:0"}
domains: {shop: {descriptors: [{key: client, limits: 1/1h}]}}
`+adminAnywhere))
	if got := askJSON(t, i, "shop", "client", "a", 1); got != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", got)
	}
	eventually(t, "the line of the outage", func() bool {
		askJSON(t, i, "shop", "client", "a", 1)
		return strings.Contains(i.text(), `"fallbacks":"error"`)
	})
}

// TestPagesCannotUseUpLimits: a web page in a browser gets 403 from /json, and nothing is counted.
func TestPagesCannotUseUpLimits(t *testing.T) {
	t.Parallel()
	i := launchServer(t, file(t, `version: 1
server: {grpc: off, http: "127.0.0.1:0"}
domains: {shop: {descriptors: [{key: client, limits: 1/1h}]}}
`+adminAnywhere))
	const body = `{"domain": "shop", "descriptors": [{"entries": [{"key": "client", "value": "a"}]}]}`
	for _, lines := range [][]string{{"Origin", "http://" + i.HTTP}, {"Sec-Fetch-Site", "cross-site"}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+i.HTTP+"/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(lines[0], lines[1])
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("%v: status %d, want 403", lines, answer.StatusCode)
		}
	}
	if got := askJSON(t, i, "shop", "client", "a", 1); got != http.StatusOK {
		t.Errorf("a program gets %d, want 200", got)
	}
}
