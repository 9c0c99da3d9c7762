package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
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

// TestUnixIsATrustedProxy: a proxy before headgate may speak through a socket alone.
func TestUnixIsATrustedProxy(t *testing.T) {
	c := parsed(t, "version: 1\nidentity: {trusted_proxies: [unix]}\nrules: [{name: a, key: [xff_ip], limits: [5/s]}]\n")
	if !c.Identity.TrustUnix || c.Identity.TrustedProxies != nil {
		t.Errorf("got %+v", c.Identity)
	}
}

// folder makes a folder with files, and gives its path.
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

// keyFile gives a file with the public half of a key whose other half nobody has.
func keyFile(t *testing.T) string {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// databaseFile gives a database in which all of 192.0.2.0/24 is in the Netherlands.
func databaseFile(t *testing.T) string {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "GeoLite2-Country", IncludeReservedNetworks: true})
	if err != nil {
		t.Fatal(err)
	}
	network := &net.IPNet{IP: net.IPv4(192, 0, 2, 0), Mask: net.CIDRMask(24, 32)}
	if err := tree.Insert(network, mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String("NL")}}); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if _, err := tree.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const withFiles = `version: 1
identity:
  trusted_proxies: [10.0.0.0/8]
  user_ip_headers: [X-Real-User-Ip]
  region_db: country.mmdb
  jwt:
    keys: keys.pem
    issuer: https://login.example.com
rules:
  - {name: a, key: [region, "jwt:sub"], limits: [5/s]}
`

// TestLoadOpensFiles: paths are relative to the configuration, wherever the
// process stands, and the identity that is opened knows what the files say.
func TestLoadOpensFiles(t *testing.T) {
	dir := folder(t, map[string]string{"headgate.yaml": withFiles, "country.mmdb": databaseFile(t), "keys.pem": keyFile(t)})
	t.Chdir(filepath.Dir(dir))
	c, err := Load(filepath.Join(filepath.Base(dir), "headgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// A temporary folder may be reached through a symbolic link.
	for got, want := range map[string]string{c.Identity.RegionDB: "country.mmdb", c.Identity.JWT.Keys: "keys.pem"} {
		one, err := os.Stat(got)
		if err != nil || !filepath.IsAbs(got) {
			t.Fatalf("got %q, %v", got, err)
		}
		if other, err := os.Stat(filepath.Join(dir, want)); err != nil || !os.SameFile(one, other) {
			t.Errorf("got %q, %v", got, err)
		}
	}
	id, err := c.OpenIdentity()
	if err != nil {
		t.Fatal(err)
	}
	if code, ok := id.Regions.Region(netip.MustParseAddr("192.0.2.9")); !ok || code != "NL" {
		t.Errorf("got %q, %t", code, ok)
	}
	if _, ok := id.Tokens.Verify("a.b.c"); ok {
		t.Error("a token of nobody is verified")
	}
	if !reflect.DeepEqual(id.TrustedProxies, c.Identity.TrustedProxies) || !reflect.DeepEqual(id.UserIPHeaders, c.Identity.UserIPHeaders) {
		t.Errorf("got %+v", id)
	}
}

func TestIdentityWithoutFiles(t *testing.T) {
	id, err := parsed(t, "version: 1\nidentity: {trusted_proxies: [unix]}\nrules: []\n").OpenIdentity()
	if err != nil || id.Regions != nil || id.Tokens != nil || !id.TrustUnix {
		t.Errorf("got %+v, %v", id, err)
	}
}

// TestFilesThatAreOfNoUse holds that all are told of at once, at their fields, and
// only when nothing else is wrong.
func TestFilesThatAreOfNoUse(t *testing.T) {
	dir := folder(t, map[string]string{"headgate.yaml": withFiles, "country.mmdb": "once upon a time", "other.mmdb": databaseFile(t)})
	file := filepath.Join(dir, "headgate.yaml")
	want := []string{
		file + ":5:14: identity.region_db: region: " + dir + "/country.mmdb is no MaxMind database",
		file + ":7:11: identity.jwt.keys: jwt: open " + dir + "/keys.pem: no such file or directory",
	}
	_, err := Load(file)
	checkHeadlines(t, err, want)
	if !strings.Contains(err.Error(), ": a path that is not absolute begins at the folder of the configuration\n") {
		t.Errorf("got %s", err)
	}
	t.Setenv("HEADGATE_IDENTITY_REGION_DB", "other.mmdb")
	t.Setenv("HEADGATE_IDENTITY_JWT_KEYS", "none.json")
	_, err = Load(file)
	checkHeadlines(t, err, []string{"HEADGATE_IDENTITY_JWT_KEYS: identity.jwt.keys: jwt: open " + dir + "/none.json: no such file"})

	if err := os.WriteFile(file, []byte(withFiles+"fallback: never\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Load(file)
	checkHeadlines(t, err, []string{file + ":11:11: fallback: "})
}

// checkHeadlines holds the beginnings of all faults.
func checkHeadlines(t *testing.T, err error, want []string) {
	t.Helper()
	faults, ok := errors.AsType[Faults](err)
	if !ok || len(faults) != len(want) {
		t.Fatalf("got %v", err)
	}
	for i, f := range faults {
		if !strings.HasPrefix(f.Headline(), want[i]) {
			t.Errorf("got\n%s\nwant\n%s", f.Headline(), want[i])
		}
	}
}

func TestFileErrorTellsTheField(t *testing.T) {
	c := &Config{Identity: Identity{RegionDB: "/none/of/these", JWT: JWT{Keys: "/none/of/those"}}}
	_, err := c.OpenIdentity()
	var paths []string
	for _, err := range unjoin(err) {
		bad, found := errors.AsType[*FileError](err)
		if !found || !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "config: "+bad.Path+": ") {
			t.Fatalf("got %v", err)
		}
		paths = append(paths, bad.Path)
	}
	if want := []string{"identity.region_db", "identity.jwt.keys"}; !slices.Equal(paths, want) {
		t.Errorf("got %v, want %v", paths, want)
	}
}
