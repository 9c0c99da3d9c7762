package acceptance

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
)

const keysSecret = "0123456789abcdef0123456789abcdef"

// keyName computes the hash of a value under log.keys: hash, by its definition.
func keyName(part, value string) string {
	h := hmac.New(sha256.New, []byte(keysSecret))
	h.Write([]byte(part + "=" + value))
	return part + "=" + hex.EncodeToString(h.Sum(nil))[:32]
}

// TestTopKeys: the table, the decision log and the access log show the same hashes for refused
// keys. An operator with the secret can compute these hashes.
func TestTopKeys(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(behind.Close)
	folder := t.TempDir()
	secret, access := filepath.Join(folder, "keys.secret"), filepath.Join(folder, "access.log")
	if err := os.WriteFile(secret, []byte(keysSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := launch(t, file(t, fmt.Sprintf(`version: 1
log: {access: json, access_file: %q, keys: hash, keys_secret_file: %q}
rules:
  - {name: product, key: ["header:X-Client-Id"], match: {path: /product}, limits: ["1/1h"]}
  - {name: search, key: [path, ip], match: {path: /search}, limits: ["1/1h"]}
proxy: {listen: 127.0.0.1:0, upstream: %q}
%s`, access, secret, behind.URL, adminAnywhere)))
	for _, c := range []struct {
		path, client string
		times        int
	}{{"/product", "me", 4}, {"/product", "you", 3}, {"/search", "me", 2}} {
		for range c.times {
			get(t, "http://"+r.Proxy+c.path, "X-Client-Id", c.client)
		}
	}
	me := keyName("header:X-Client-Id", "me")
	search := keyName("path", "/search") + " " + keyName("ip", "127.0.0.1")

	_, table, _ := call(t, "ctl", "top", "--admin", r.Admin)
	lines := strings.Split(table, "\n")
	if len(lines) < 6 || strings.Join(strings.Fields(lines[1]), " ") != "3 0 product "+me ||
		strings.Join(strings.Fields(lines[3]), " ") != "1 0 search "+search || !strings.HasPrefix(lines[5], "6 refusals of all keys") {
		t.Errorf("ctl top prints:\n%s", table)
	}
	_, text, _ := call(t, "ctl", "top", "search", "--json", "--admin", r.Admin)
	var top admin.Top
	if err := json.Unmarshal([]byte(text), &top); err != nil || len(top.Keys) != 1 || top.Keys[0].Key != search {
		t.Errorf("ctl top search --json prints %s (%v)", text, err)
	}
	for name, want := range map[string]string{
		"serch":  `no rule or limit has the name "serch": did you mean search?`,
		"nosuch": `no rule or limit has the name "nosuch": headgate ctl status lists the rules`,
	} {
		if status, out, message := call(t, "ctl", "top", name, "--admin", r.Admin); status != 1 || out != "" || !strings.Contains(message, want) {
			t.Errorf("ctl top %s: status %d, %q %q", name, status, out, message)
		}
	}
	if status, _, message := call(t, "ctl", "top", "--top", "0", "--admin", r.Admin); status == 0 || !strings.Contains(message, "1 to 1024") {
		t.Errorf("--top 0: %d, %s", status, message)
	}
	eventually(t, "a line of the access log with the key", func() bool {
		written, err := os.ReadFile(access)
		return err == nil && strings.Contains(string(written), `"rule":"search","key":"`+search+`"`)
	})
	eventually(t, "a line of a decision with the key", func() bool {
		return slices.ContainsFunc(r.lines(), func(l logLine) bool { return l.Msg == "decision" && l.Rule == "product" && l.Key == me })
	})
}

// TestKeysOff: no key is shown, and ctl top gives the reason.
func TestKeysOff(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(behind.Close)
	r := launch(t, file(t, fmt.Sprintf(`version: 1
log: {keys: off, access: json}
rules: [{name: product, key: [ip], limits: ["1/1h"]}]
proxy: {listen: 127.0.0.1:0, upstream: %q}
%s`, behind.URL, adminAnywhere)))
	get(t, "http://"+r.Proxy)
	get(t, "http://"+r.Proxy)
	if status, _, message := call(t, "ctl", "top", "--admin", r.Admin); status != 1 || !strings.Contains(message, "log.keys is off") {
		t.Errorf("%d, %s", status, message)
	}
	eventually(t, "a line of a decision", func() bool {
		return slices.ContainsFunc(r.lines(), func(l logLine) bool { return l.Msg == "decision" })
	})
	for _, line := range r.lines() {
		if line.Key != "" {
			t.Errorf("a key is named: %+v", line)
		}
	}
}
