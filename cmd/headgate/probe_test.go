package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckOpensWhatTheProxyOpens checks that check reports each error that stops the proxy
// at its start, in the same words. With --offline, check opens no file and reports no such error.
func TestCheckOpensWhatTheProxyOpens(t *testing.T) {
	for what, row := range map[string]struct{ settings, want string }{
		"a certificate":          {"proxy: {UP, tls: {cert: none.crt, key: none.key}}", "app: proxy.tls: certs: open "},
		"a CA of clients":        {"proxy: {UP, tls: {cert: none.crt, key: none.key, client_ca: none.ca}}", "none.crt: no such file"},
		"a CA of the upstream":   {"proxy: {upstream: 'https://127.0.0.1:9', upstream_tls: {ca: none.ca}, LI}", "app: proxy.upstream_tls: certs: open "},
		"a password file":        {"store: redis://127.0.0.1:1\nstore_password_file: none.txt\nproxy: {UP}", "store_password_file: open "},
		"a CA of the store":      {"store: rediss://127.0.0.1:1\nstore_tls: {ca: none.ca}\nproxy: {UP}", "store_tls.ca: open "},
		"a folder of a log":      {"log: {access: json, access_file: none/access.log}\nproxy: {UP}", "create the folder"},
		"a folder of a socket":   {"proxy: {upstream: 'http://127.0.0.1:9', listen: 'unix:/none/at/all.sock'}", "app: proxy.listen: listen: open /none/at/"},
		"a region database":      {"identity: {region_db: none.mmdb}\nproxy: {UP}", "identity.region_db"},
		"a set of keys":          {"identity: {jwt: {keys: none.json}}\nproxy: {UP}", "identity.jwt.keys"},
		"two files, both listed": {"store: redis://127.0.0.1:1\nstore_password_file: none.txt\nproxy: {UP, tls: {cert: none.crt, key: none.key}}", "none.crt: no such file"},
	} {
		t.Run(what, func(t *testing.T) {
			settings := strings.NewReplacer("UP", "upstream: 'http://127.0.0.1:9', listen: '127.0.0.1:0'", "LI", "listen: '127.0.0.1:0'").Replace(row.settings)
			path := write(t, "version: 1\nadmin: {listen: off, health: off}\nrules: []\n"+settings+"\n")
			status, _, checked := call(t, "check", "--config", path)
			if status != exitUsage || !strings.Contains(checked, row.want) {
				t.Errorf("check: status %d: %s\nwant %q", status, checked, row.want)
			}
			if status, _, started := call(t, "proxy", "--config", path); status == exitOK || !strings.Contains(started, row.want) && what != "a folder of a socket" {
				t.Errorf("proxy: status %d: %s\nwant %q", status, started, row.want)
			}
			if status, _, stderr := call(t, "check", "--offline", "--config", path); status != exitOK {
				t.Errorf("check --offline: status %d: %s", status, stderr)
			}
			if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
				t.Errorf("the folder has %v (%v)", entries, err)
			}
		})
	}
}

// TestCheckLeavesNothing checks that a check creates no access log and no socket.
func TestCheckLeavesNothing(t *testing.T) {
	path := write(t, "version: 1\nrules: []\nlog: {access: json, access_file: access.log}\n")
	folder := filepath.Dir(path)
	text := "proxy: {upstream: 'http://127.0.0.1:9', listen: 'unix:" + folder + "/x.sock'}\n"
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := call(t, "check", "--config", path); status != exitOK {
		t.Errorf("status %d: %s", status, stderr)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v (%v)", entries, err)
	}
}
