package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestStoreNeedsRestart(t *testing.T) {
	const base = "version: 1\nrules: []\nstore: rediss://u:p@h\n"
	for next, want := range map[string]string{
		base: "", base + "prefetch: auto\nstore_timeout: 1s\n": "",
		"version: 1\nrules: []\n": "", "version: 1\nrules: []\nstore: rediss://u:q@h\n": "store",
		"version: 1\nrules: []\nstore: redis://u:p@h\n": "store", "version: 1\nrules: []\nstore: rediss://u@h\nstore_password_file: a\n": "store store_password_file",
		base + "store_tls: {ca: a}\ndeny_cache: 2s\nbreaker: {failures: 1}\n": "store_tls deny_cache breaker",
	} {
		if got := strings.Join(parsed(t, base).StoreNeedsRestart(parsed(t, next)), " "); got != want {
			t.Errorf("%s: got %q, want %q", next, got, want)
		}
	}
}

// TestLocateStoreFiles: they begin at the folder of the configuration; Load opens none.
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
