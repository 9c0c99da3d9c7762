package open

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// keyFile makes a file with a public key. The private key is discarded.
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

// databaseFile makes a database in which 192.0.2.0/24 is in the Netherlands.
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

// described gives the guard's configuration with a store in memory.
func described(t *testing.T, c *config.Config) (guard.Config, error) {
	t.Helper()
	store, err := memory.New(c.StoreConfig())
	if err != nil {
		t.Fatal(err)
	}
	return GuardConfig(c, store)
}

// TestGuardConfigOpensFiles: paths are relative to the configuration, in whatever folder the
// process runs. The opened identity has the contents of the files.
func TestGuardConfigOpensFiles(t *testing.T) {
	dir := folder(t, map[string]string{"headgate.yaml": withFiles, "country.mmdb": databaseFile(t), "keys.pem": keyFile(t)})
	t.Chdir(filepath.Dir(dir))
	c, err := config.Load(filepath.Join(filepath.Base(dir), "headgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// The path of a temporary folder may have a symbolic link.
	for got, want := range map[string]string{c.Identity.RegionDB: "country.mmdb", c.Identity.JWT.Keys: "keys.pem"} {
		one, err := os.Stat(got)
		if err != nil || !filepath.IsAbs(got) {
			t.Fatalf("got %q, %v", got, err)
		}
		if other, err := os.Stat(filepath.Join(dir, want)); err != nil || !os.SameFile(one, other) {
			t.Errorf("got %q, %v", got, err)
		}
	}
	g, err := described(t, c)
	if err != nil {
		t.Fatal(err)
	}
	id := g.Identity
	if code, ok := id.Regions.Region(netip.MustParseAddr("192.0.2.9")); !ok || code != "NL" {
		t.Errorf("got %q, %t", code, ok)
	}
	if _, ok := id.Tokens.Verify("a.b.c"); ok {
		t.Error("a forged token is verified")
	}
	if !reflect.DeepEqual(id.TrustedProxies, c.Identity.TrustedProxies) || !reflect.DeepEqual(id.UserIPHeaders, c.Identity.UserIPHeaders) {
		t.Errorf("got %+v", id)
	}
}

func TestIdentityWithoutFiles(t *testing.T) {
	g, err := described(t, parsed(t, "version: 1\nidentity: {trusted_proxies: [unix]}\nrules: []\n"))
	if err != nil || g.Identity.Regions != nil || g.Identity.Tokens != nil || !g.Identity.TrustUnix {
		t.Errorf("got %+v, %v", g.Identity, err)
	}
}

// TestFilesThatAreOfNoUse: all unusable files are reported at once, each at its field.
func TestFilesThatAreOfNoUse(t *testing.T) {
	dir := folder(t, map[string]string{"headgate.yaml": withFiles, "country.mmdb": "once upon a time", "other.mmdb": databaseFile(t)})
	file := filepath.Join(dir, "headgate.yaml")
	text := checkLocated(t, file, []string{
		file + ":5:14: identity.region_db: region: " + dir + "/country.mmdb is not a MaxMind database",
		file + ":7:11: identity.jwt.keys: jwt: open " + dir + "/keys.pem: no such file or directory",
	})
	if !strings.Contains(text, ": a relative path starts at the folder of the configuration\n") {
		t.Errorf("got %s", text)
	}
	t.Setenv("HEADGATE_IDENTITY_REGION_DB", "other.mmdb")
	t.Setenv("HEADGATE_IDENTITY_JWT_KEYS", "none.json")
	checkLocated(t, file, []string{"HEADGATE_IDENTITY_JWT_KEYS: identity.jwt.keys: jwt: open " + dir + "/none.json: no such file"})
}

// checkLocated checks the beginning of each fault, for a new guard and for a reload. It gives
// the text of the faults.
func checkLocated(t *testing.T, file string, want []string) string {
	t.Helper()
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Guard(c)
	faults, ok := errortype.As[config.Faults](err)
	if !ok || len(faults) != len(want) {
		t.Fatalf("got %v", err)
	}
	for i, f := range faults {
		if !strings.HasPrefix(f.Headline(), want[i]) {
			t.Errorf("got\n%s\nwant\n%s", f.Headline(), want[i])
		}
	}
	if _, again := described(t, c); again == nil || again.Error() != faults.Error() {
		t.Errorf("a reload says %v, want %v", again, faults)
	}
	return faults.Error()
}

// TestRegionsOfTheCaller: a program may open the database itself. If it does not, an error says
// so.
func TestRegionsOfTheCaller(t *testing.T) {
	c := parsed(t, "version: 1\nidentity: {region_db: country.mmdb}\nrules: [{name: a, key: [region], limits: [5/s]}]\n")
	store, err := memory.New(c.StoreConfig())
	if err != nil {
		t.Fatal(err)
	}
	var regions rule.Regions = nowhere{}
	if g, err := c.GuardConfig(store, regions); err != nil || g.Identity.Regions != regions {
		t.Errorf("got %+v, %v", g.Identity, err)
	}
	_, err = c.GuardConfig(store, nil)
	if bad, found := errortype.As[*config.FileError](err); !found || bad.Path != "identity.region_db" || !strings.Contains(err.Error(), "config/open") {
		t.Errorf("got %v", err)
	}
}
