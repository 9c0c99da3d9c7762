package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const noToken = `"sha256:0000000000000000000000000000000000000000000000000000000000000000"`

// callersFiles writes a configuration and its file of callers, and loads it.
func callersFiles(t *testing.T, server, callers string) (*Config, error) {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "headgate.yaml")
	text := "version: 1\nserver: {" + server + "}\nrules: [{name: search, key: [ip], limits: [1/1s]}]\n"
	for file, text := range map[string]string{path: text, filepath.Join(folder, "callers.yaml"): callers} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(path)
}

// TestAllCallers: callers may stand in the configuration, and in a file of their own that is watched.
func TestAllCallers(t *testing.T) {
	t.Parallel()
	c, err := callersFiles(t, `grpc: {auth: token}, callers: [{name: a, tokens: [`+noToken+`], scopes: [decide]}], callers_file: callers.yaml`,
		"callers:\n  - {name: b, certificate: spiffe://b, scopes: [send_limits, read], domains: [shop], rules: [search], until: 2027-01-31}\n")
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.AllCallers()
	if err != nil || len(all) != 2 {
		t.Fatalf("got %+v, %v", all, err)
	}
	b := all[1]
	if all[0].Name != "a" || b.Name != "b" || b.Certificate != "spiffe://b" || b.Scopes != ScopeSendLimits|ScopeRead ||
		!slices.Equal(b.Domains, []string{"shop"}) || !slices.Equal(b.Rules, []string{"search"}) {
		t.Errorf("got %+v", all)
	}
	if want := time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC); !b.Until.Equal(want) {
		t.Errorf("until is %v, want %v: the day counts", b.Until, want)
	}
	if !slices.ContainsFunc(c.Files(), func(f string) bool { return filepath.Base(f) == "callers.yaml" && filepath.IsAbs(f) }) {
		t.Errorf("the files %v leave the callers out", c.Files())
	}
}

// TestCallersFileFaults lists what can be wrong with the file, and what the error says.
func TestCallersFileFaults(t *testing.T) {
	t.Parallel()
	const both = `callers: [{name: a, tokens: [` + noToken + `], scopes: [decide]}], callers_file: callers.yaml`
	for _, row := range []struct{ about, server, file, want string }{
		{"a misspelled field", both, "caller: []\n", "did you mean callers?"},
		{"no list", both, "callers: 1\n", "must be a list"},
		{"an unknown rule", both, "callers: [{name: b, certificate: b, scopes: [decide], rules: [serch]}]\n", "did you mean search?"},
		{"a name of the configuration", both, "callers: [{name: a, certificate: b, scopes: [decide]}]\n", "appears twice, in server.callers"},
		{"a token of the configuration", both, "callers: [{name: b, tokens: [" + noToken + "], scopes: [decide]}]\n", "has a token of caller"},
		{"no YAML", both, "{\n", "callers.yaml:"},
		{"no text", both, "\n", "write callers: ["},
		{"a file that does not exist", "callers_file: none.yaml", "callers: []\n", "server.callers_file"},
	} {
		c, err := callersFiles(t, row.server, row.file)
		if err != nil {
			t.Fatalf("%s: %v", row.about, err)
		}
		if _, err = c.AllCallers(); err == nil || !strings.Contains(c.Located(err).Error(), row.want) {
			t.Errorf("%s: got %v, want %q", row.about, err, row.want)
		}
	}
}

// TestOnlyLocal lists addresses that only the machine itself reaches.
func TestOnlyLocal(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "127.8.0.1:1": true, "[::1]:1": true, "localhost:1": true, "LOCALHOST:1": true, "unix:/a": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "localhost.example:1": false, "systemd": false,
		"systemd:localhost": false, "": false,
	} {
		if got := OnlyLocal(address); got != want {
			t.Errorf("%q: got %v, want %v", address, got, want)
		}
	}
}

// TestFaultsHideTokens: a token in any place of a file is in no fault.
func TestFaultsHideTokens(t *testing.T) {
	t.Parallel()
	const secret = "SECRETsecret-_0123456789"
	for _, text := range []string{
		"tokens: hg_" + secret, "tokens: [hg_" + secret + "]", "tokens: [[hg_" + secret + "]]", "tokens: {a: hg_" + secret + "}",
		"token: hg_" + secret, "name: [hg_" + secret + "]", "tokens: [hg_" + secret + ": x]", "scopes: [hg_" + secret + "]",
		"tokens: [hg_" + secret, "tokens: *hg_" + secret, "certificate: [hg_" + secret + "]",
	} {
		_, err := Parse("f", []byte("version: 1\nrules: []\nserver: {callers: [{name: a, scopes: [decide], "+text+"}]}\n"))
		if err == nil || strings.Contains(err.Error(), secret[:6]) {
			t.Errorf("%s: the fault is %v", text, err)
		}
	}
}
