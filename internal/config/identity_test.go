package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/errortype"
)

func TestIdentity(t *testing.T) {
	got := parsed(t, string(read(t, "testdata/ok/identity.yaml"))).Identity
	want := Identity{
		TrustedProxies: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.7/32"), netip.MustParsePrefix("2001:db8::/32"),
		},
		TrustUnix:     true,
		UserIPHeaders: []string{"X-Real-User-Ip", "Cf-Connecting-Ip"},
		RegionDB:      "country.mmdb",
		JWT:           JWT{Keys: "keys/jwks.json", Issuer: "https://login.example.com", Audience: "api"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// TestUnixIsATrustedProxy: a trusted proxy may connect only through a unix socket.
func TestUnixIsATrustedProxy(t *testing.T) {
	c := parsed(t, "version: 1\nidentity: {trusted_proxies: [unix]}\nrules: [{name: a, key: [xff_ip], limits: [5/s]}]\n")
	if !c.Identity.TrustUnix || c.Identity.TrustedProxies != nil {
		t.Errorf("got %+v", c.Identity)
	}
}

// folder makes a folder with files, and returns its path.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// checkHeadlines compares the beginnings of all faults.
func checkHeadlines(t *testing.T, err error, want []string) {
	t.Helper()
	faults, ok := errortype.As[Faults](err)
	if !ok || len(faults) != len(want) {
		t.Fatalf("got %v", err)
	}
	for i, f := range faults {
		if !strings.HasPrefix(f.Headline(), want[i]) {
			t.Errorf("got\n%s\nwant\n%s", f.Headline(), want[i])
		}
	}
}
