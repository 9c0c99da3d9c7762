package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// secretConfiguration has one limit on a store with access control.
const secretConfiguration = `version: 1
store: "%s"
%s
store_timeout: 2s
deny_cache: 0s
max_memory: 16MiB
rules:
  - {name: one, match: {path: /*}, key: [path], algorithm: sliding_log, limits: ["2/30d"], fallback: deny}
proxy:
  listen: "127.0.0.1:0"
  upstream: "%%s"
`

// password has characters that an address must escape and that a log must not show.
const password = "s3cr3t/@:%pass"

// escaped is the password in the form of an address.
const escaped = "s3cr3t%%2F%%40%%3A%%25pass"

// ourRules are the rules in docs/stores.md for a user of the store, with a database.
func ourRules() []string {
	return strings.Fields("~hg3:* resetchannels -@all +evalsha +eval +time +mget +get +set +del +ping " +
		"+rpush +lpop +rpop +lindex +lset +lrem +ltrim +pexpireat +select")
}

// counts checks that an instance counts in its store: two requests pass and the third is
// refused. The log shows no password.
func counts(t *testing.T, store, settings string) {
	t.Helper()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, fmt.Sprintf(secretConfiguration, store, settings), behind.URL)
	for n, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		if resp, body := get(t, "http://"+i.Proxy+"/x"); resp.StatusCode != want {
			t.Errorf("request %d: %d, want %d: %s\n%s", n, resp.StatusCode, want, body, i.text())
		}
	}
	silent(t, "the log", i.text())
	_, status := get(t, "http://"+i.Admin+"/api/v1/status")
	silent(t, "the status", status)
	_, metrics := get(t, "http://"+i.Health+"/metrics")
	silent(t, "the metrics", metrics)
}

// silent checks that a text contains neither the password nor a long part of it.
func silent(t *testing.T, where, text string) {
	t.Helper()
	if strings.Contains(text, "s3cr3t") {
		t.Errorf("%s shows the password:\n%s", where, text)
	}
}

// refused checks that an instance falls back, and that one line of its log gives the reason.
func refused(t *testing.T, store, settings string, words ...string) {
	t.Helper()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, fmt.Sprintf(secretConfiguration, store, settings), behind.URL)
	if resp, _ := get(t, "http://"+i.Proxy+"/x"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%d, want 503 of the fallback", resp.StatusCode)
	}
	eventually(t, "a line that says why", func() bool { return strings.Contains(i.text(), givenUp) })
	silent(t, "the log", i.text())
	if n := strings.Count(i.text(), givenUp); n != 1 {
		t.Errorf("%d lines: want one\n%s", n, i.text())
	}
	for _, word := range words {
		if !strings.Contains(i.text(), word) {
			t.Errorf("the log does not say %q\n%s", word, i.text())
		}
	}
}

func passwordFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// checkSilent runs headgate check, which must show no password.
func checkSilent(t *testing.T, store, settings string) {
	t.Helper()
	path := file(t, fmt.Sprintf(fmt.Sprintf(secretConfiguration, store, settings), "http://127.0.0.1:9"))
	status, out, faults := call(t, "check", "--config", path)
	if status != 0 {
		t.Errorf("check: %d: %s", status, faults)
	}
	silent(t, "check", out+faults)
}

// TestStoreUser: a user with only the needed rights works, with a password in the address or in
// a file, with and without a database. For a user without these rights, the log says so.
func TestStoreUser(t *testing.T) {
	server := testserver.StartACL(t, "limits", password, ourRules()...)
	flush := func() { server.CLI("FLUSHALL") }
	inFile := "store_password_file: " + passwordFile(t, password+"\n")
	for _, c := range []struct{ name, store, settings string }{
		{"in the address", "redis://limits:" + escaped + "@" + server.Addr, ""},
		{"in a file", "redis://limits@" + server.Addr, inFile},
		{"with a database", "redis://limits:" + escaped + "@" + server.Addr + "/3", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			flush()
			counts(t, c.store, c.settings)
			checkSilent(t, c.store, c.settings)
			if space := server.CLI("INFO", "keyspace"); strings.Contains(space, "db3:") != strings.HasSuffix(c.store, "/3") {
				t.Errorf("%s has counted in %q", c.store, space)
			}
		})
	}
	refused(t, "redis://limits:s3cr3twrong@"+server.Addr, "", "WRONGPASS")
	refused(t, "redis://"+server.Addr, "", "NOAUTH")
	weak := testserver.StartACL(t, "limits", password, "~other:*", "resetchannels", "+@all")
	refusedLater(t, "redis://limits:"+escaped+"@"+weak.Addr, "NOPERM")
}

// refusedLater is refused for faults that only a decision shows. The breaker opens after several
// decisions.
func refusedLater(t *testing.T, store, word string) {
	t.Helper()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, fmt.Sprintf(secretConfiguration, store, ""), behind.URL)
	eventually(t, "a line that says why", func() bool {
		if resp, _ := get(t, "http://"+i.Proxy+"/x"); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%d, want 503 of the fallback", resp.StatusCode)
		}
		return strings.Contains(i.text(), givenUp)
	})
	silent(t, "the log", i.text())
	if !strings.Contains(i.text(), word) {
		t.Errorf("the log does not say %q\n%s", word, i.text())
	}
}

// TestStorePassword: a password without a user belongs to the default user.
func TestStorePassword(t *testing.T) {
	t.Parallel()
	server := testserver.StartACL(t, "default", password, "~*", "+@all")
	counts(t, "redis://:"+escaped+"@"+server.Addr, "")
}

// TestStoreTLS: a server's certificate is verified by the named authorities. A certificate of
// another authority is refused with that reason.
func TestStoreTLS(t *testing.T) {
	t.Parallel()
	server, own := testserver.StartTLS(t)
	counts(t, "rediss://"+server.Addr, "store_tls: {ca: "+own.CAFile+"}")
	others := testserver.NewCertificates(t)
	refused(t, "rediss://"+server.Addr, "store_tls: {ca: "+others.CAFile+"}", "certificate")
	refused(t, "rediss://"+server.Addr, "", "certificate")
	refused(t, "rediss://"+server.Addr, "store_tls: {ca: "+own.CAFile+", server_name: elsewhere.example}", "elsewhere.example")
	strict, theirs := testserver.StartTLS(t, "--tls-auth-clients", "yes")
	counts(t, "rediss://"+strict.Addr, fmt.Sprintf("store_tls: {ca: %s, cert: %s, key: %s}", theirs.CAFile, theirs.CertFile, theirs.KeyFile))
	refused(t, "rediss://"+strict.Addr, "store_tls: {ca: "+theirs.CAFile+"}")
}

// TestTLSClientOfPlainServer: a Redis server without TLS does not answer a TLS handshake, with
// or without a password. The log names this cause, and gives no advice for slow servers.
func TestTLSClientOfPlainServer(t *testing.T) {
	t.Parallel()
	const advice = "write redis in place of rediss"
	refused(t, "rediss://"+testserver.Start(t).Addr, "", advice)
	refused(t, "rediss://"+testserver.StartACL(t, "limits", password, ourRules()...).Addr, "", advice)
	refused(t, "rediss+cluster://"+testserver.Start(t).Addr, "", advice)
}

// TestPlainClientOfTLSServer: a server that requires TLS counts as unreachable for a client
// without TLS.
func TestPlainClientOfTLSServer(t *testing.T) {
	t.Parallel()
	server, _ := testserver.StartTLS(t)
	refused(t, "redis://"+server.Addr, "")
}

// TestRefusalsSayWhatToDo: when a server refuses an instance from the start, the log line gives
// the next step, as for a later refusal.
func TestRefusalsSayWhatToDo(t *testing.T) {
	t.Parallel()
	server := testserver.StartACL(t, "limits", password, ourRules()...)
	refused(t, "redis://limits:s3cr3twrong@"+server.Addr, "", "correct the user in the address")
	refused(t, "redis://"+server.Addr, "", "set store_password_file to its path")
	secure, _ := testserver.StartTLS(t)
	refused(t, "rediss://"+secure.Addr, "", "store_tls")
}
