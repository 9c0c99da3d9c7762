package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// decisionLine finds the line of a decision.
func decisionLine(i *instance, wanted func(l *logLine) bool) (found logLine, ok bool) {
	for _, line := range i.lines() {
		if line.Msg == "decision" && wanted(&line) {
			return line, true
		}
	}
	return found, false
}

// TestReportLeadsToTheLine: what a refused client reports leads to its line in the decision log and in the access log. A reload turns
// the field off. Without the setting, the name of an instance says nothing about the machine.
func TestReportLeadsToTheLine(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	t.Cleanup(behind.Close)
	access := filepath.Join(t.TempDir(), "access.log")
	settings := fmt.Sprintf(`version: 1
log: {access: json, access_file: %q}
rules: [{name: product, key: [ip], limits: ["1/1h"]}]
proxy: {listen: 127.0.0.1:0, upstream: %q}
%s`, access, behind.URL, adminAnywhere)
	named, random := launch(t, file(t, settings+"instance: eu-1\n")), launch(t, file(t, settings))
	refuse := func(i *instance) string {
		r, _ := get(t, "http://"+i.Proxy+"/v1/x?y=z")
		if r.StatusCode == http.StatusOK && r.Header.Get("Headgate-Decision") == "" {
			r, _ = get(t, "http://"+i.Proxy+"/v1/x?y=z")
		}
		if r.StatusCode != http.StatusTooManyRequests {
			t.Fatalf("status %d, want a refusal after one request", r.StatusCode)
		}
		return r.Header.Get("Headgate-Decision")
	}
	reported := refuse(named)
	if !strings.HasPrefix(reported, "eu-1/") {
		t.Fatalf("a refusal reports %q, want eu-1/ID", reported)
	}
	var line logLine
	var answered struct {
		URI       string `json:"uri"`
		Key       string `json:"key"`
		Decision  string `json:"decision"`
		RequestID string `json:"request_id"`
	}
	eventually(t, "the lines of "+reported, func() bool {
		var logged bool
		line, logged = decisionLine(named, func(l *logLine) bool { return l.Decision == reported })
		written, err := os.ReadFile(access)
		for text := range strings.Lines(string(written)) {
			if strings.Contains(text, reported) {
				return err == nil && logged && json.Unmarshal([]byte(text), &answered) == nil
			}
		}
		return false
	})
	if line.Instance != "eu-1" || line.Method != http.MethodGet || line.Host != named.Proxy || line.Path != "/v1/x" ||
		line.RequestID == "" || line.RequestID != answered.RequestID || line.Key == "" || line.Key != answered.Key ||
		answered.URI != "/v1/x?y=z" || answered.Decision != reported {
		t.Errorf("the decision log has %+v, and the access log %+v", line, answered)
	}
	host, err := os.Hostname()
	if other := refuse(random); err != nil || strings.HasPrefix(other, "eu-1/") || len(other) != len("01234567/0123456789abcdef") ||
		strings.Contains(other, host) {
		t.Errorf("without a name, a refusal reports %q", other)
	}
	if err := os.WriteFile(named.path, []byte(settings+"instance: eu-2\ndecision_header: false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := call(t, "ctl", "reload", "--admin", named.Admin); status != 0 {
		t.Fatal(stderr)
	}
	if reported := refuse(named); reported != "" {
		t.Errorf("with decision_header: false, a refusal reports %q", reported)
	}
	eventually(t, "a line under the new name", func() bool {
		_, found := decisionLine(named, func(l *logLine) bool { return l.Instance == "eu-2" })
		return found
	})
}

// TestKeysByReader: logs hash keys. A caller that may administer gets them plainly in top, bans and shares, and another one gets the
// hashes of the log and no ID of a ban, which has the key.
func TestKeysByReader(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	t.Cleanup(behind.Close)
	secret := filepath.Join(t.TempDir(), "keys.secret")
	if err := os.WriteFile(secret, []byte(keysSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	alice, administers := tokenOf(t, "alice", "administer,read")
	bob, reads := tokenOf(t, "bob", "read")
	i := launch(t, file(t, fmt.Sprintf(`version: 1
log: {keys_secret_file: %q}
fair_share: {client: "header:X-Client-Id", capacity: 1000, cycle: 1s}
rules: [{name: product, key: ["header:X-Client-Id"], limits: ["1/1h"], ban: {after: 1/1h, for: 1h}}]
proxy: {listen: 127.0.0.1:0, upstream: %q}
server:
  callers: [{name: alice, tokens: [%q], scopes: [administer, read]}, {name: bob, tokens: [%q], scopes: [read]}]
admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0", auth: token}
`, secret, behind.URL, administers, reads)))
	for range 3 {
		get(t, "http://"+i.Proxy, "X-Client-Id", "me")
	}
	hashed := keyName("header:X-Client-Id", "me")
	for token, want := range map[string]struct{ key, ban, client string }{
		alice: {`header:X-Client-Id="me"`, "me", "me"}, bob: {hashed, hashed, hashed},
	} {
		show := func(into any, args ...string) {
			t.Helper()
			status, out, stderr := call(t, append([]string{"ctl", "--admin", i.Admin, "--token-file", token, "--json"}, args...)...)
			if err := json.Unmarshal([]byte(out), into); err != nil || status != 0 {
				t.Fatalf("%v: status %d, %v: %s%s", args, status, err, out, stderr)
			}
		}
		var top admin.Top
		var bans admin.Bans
		var shares admin.Shares
		show(&top, "top")
		show(&bans, "bans")
		show(&shares, "shares")
		if len(top.Keys) != 1 || top.Keys[0].Key != want.key {
			t.Errorf("ctl top shows %+v, want %s", top.Keys, want.key)
		}
		if len(bans.Bans) != 1 || !strings.Contains(bans.Bans[0].Key, want.ban) || (bans.Bans[0].ID != "") != (token == alice) {
			t.Errorf("ctl bans shows %+v, want %s", bans.Bans, want.ban)
		}
		if len(shares.Clients) != 1 || shares.Clients[0].Client != want.client {
			t.Errorf("ctl shares shows %+v, want %s", shares.Clients, want.client)
		}
	}
	eventually(t, "a hashed key in the log", func() bool {
		_, found := decisionLine(i, func(l *logLine) bool { return l.Key == hashed })
		return found
	})
}
