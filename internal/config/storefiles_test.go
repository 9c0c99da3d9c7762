package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNeedsRestart(t *testing.T) {
	const base = "version: 1\nrules: []\nstore: rediss://u:p@h\n"
	for next, want := range map[string]string{
		base: "", base + "prefetch: auto\nstore_timeout: 1s\n": "",
		"version: 1\nrules: []\n": "", "version: 1\nrules: []\nstore: rediss://u:q@h\n": "store",
		"version: 1\nrules: []\nstore: redis://u:p@h\n": "store", "version: 1\nrules: []\nstore: rediss://u@h\nstore_password_file: a\n": "store store_password_file",
		base + "store_tls: {ca: a}\ndeny_cache: 2s\nbreaker: {failures: 1}\n": "store_tls.ca deny_cache breaker.failures",
	} {
		if got := strings.Join(parsed(t, base).NeedsRestart(parsed(t, next)), " "); got != want {
			t.Errorf("%s: got %q, want %q", next, got, want)
		}
	}
}

// TestNeedsRestartOfPerSecond: other credentials of store_per_second need a restart.
func TestNeedsRestartOfPerSecond(t *testing.T) {
	const base = "version: 1\nrules: []\nstore: redis://h\n"
	started := parsed(t, base+"store_per_second: redis://:p@g\n")
	for next, want := range map[string]string{
		"store_per_second: redis://:p@g:6379\n": "",
		"store_per_second: redis://:q@g\n":      "store_per_second",
		"store_per_second: rediss://:p@g\n":     "store_per_second",
	} {
		if got := strings.Join(started.NeedsRestart(parsed(t, base+next)), " "); got != want {
			t.Errorf("%s: got %q, want %q", next, got, want)
		}
	}
}

// TestNeedsRestartOfSentinels: another password of the sentinels needs a restart.
func TestNeedsRestartOfSentinels(t *testing.T) {
	const base = "version: 1\nrules: []\nstore: redis+sentinel://h/m\nstore_sentinel_password: "
	for next, want := range map[string]string{"p": "", "q": "store_sentinel_password", "q\nstore_sentinel_user: u": "store_sentinel_password store_sentinel_user"} {
		if got := strings.Join(parsed(t, base+"p\n").NeedsRestart(parsed(t, base+next+"\n")), " "); got != want {
			t.Errorf("%s: got %q, want %q", next, got, want)
		}
	}
}

// TestSamePlace: a store with another store_per_second, or without one, is another place.
func TestSamePlace(t *testing.T) {
	const base = "version: 1\nrules: []\nstore: redis://h\n"
	started := parsed(t, base+"store_per_second: redis://g\n").Shared
	for next, want := range map[string]bool{
		"store_per_second: redis://:p@g\n": true, "store_per_second: redis://f\n": false, "": false,
	} {
		other := parsed(t, base+next).Shared
		if started.SamePlace(other) != want || other.SamePlace(started) != want {
			t.Errorf("%q: the same place is not %t", next, want)
		}
	}
}

// TestNeedsRestartOfSections: each changed field is named if it needs a restart. Fields
// that a reload takes, and other spellings of the same value, are not named.
func TestNeedsRestartOfSections(t *testing.T) {
	const base = "version: 1\nrules: []\n"
	const proxy = base + "proxy: {upstream: 'http://a'"
	for _, row := range []struct{ started, next, want string }{
		{base, base + "on_full: deny\nmax_memory: 262144KiB\nadmin: {listen: '127.0.0.1:9902'}\n", ""},
		{base, base + "on_full: allow\nmax_memory: 1GiB\n", "max_memory on_full"},
		{proxy + "}\n", base, "proxy.upstream"},
		{base, proxy + "}\n", "proxy.upstream"},
		{base, base + "log: {level: debug}\nadmin: {hosts: [a.example]}\nevaluate: independent\nnamespace: a\nshutdown_timeout: 1s\n", ""},
		{base, base + "log: {format: text, decisions: all, access: json, access_file: a}\nadmin: {listen: off, health: off}\n", "log.format"},
		{proxy + "}\n", proxy + ", upstream_timeout: 1s, body_idle_timeout: 1s, header_style: none, data_plane: fast}\n", ""},
		{proxy + "}\n", base + "proxy: {upstream: 'https://b', upstream_tls: {ca: a}}\n", ""},
		{
			proxy + "}\n", proxy + ", tls: {cert: c, key: k}, listen: ':1', proxy_protocol: [unix], request_id: off}\n",
			"proxy.listen proxy.tls.cert proxy.tls.key proxy.proxy_protocol proxy.request_id",
		},
		{proxy + "}\n", proxy + ", read_header_timeout: 1s, idle_timeout: 1s, max_header: 1KiB, max_connections: 1, " +
			"max_connections_per_address: 1, max_requests: 1}\n", "proxy.read_header_timeout proxy.idle_timeout proxy.max_header " +
			"proxy.max_connections proxy.max_connections_per_address proxy.max_requests"},
	} {
		if got := strings.Join(parsed(t, row.started).NeedsRestart(parsed(t, row.next)), " "); got != row.want {
			t.Errorf("%s\n%s: got %q, want %q", row.started, row.next, got, row.want)
		}
	}
}

// TestLocateStoreFiles: relative paths start at the folder of the configuration, and Load opens no file.
func TestLocateStoreFiles(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "headgate.yaml")
	text := "version: 1\nrules: []\nstore: rediss+sentinel://u@h/m\nstore_password_file: p\nstore_sentinel_password_file: /s\nstore_tls: {ca: a, cert: c, key: k}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	s := c.Shared
	got := []string{s.PasswordFile, s.SentinelPasswordFile, s.Files.CA, s.Files.Cert, s.Files.Key}
	want := []string{filepath.Join(folder, "p"), "/s", filepath.Join(folder, "a"), filepath.Join(folder, "c"), filepath.Join(folder, "k")}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
