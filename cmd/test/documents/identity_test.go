package documents

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"github.com/headgate/headgate/internal/config"
)

// identityFiles replace the files that the documents' examples name. They are a database with the
// countries of two networks for documentation, and a key.
type identityFiles struct {
	regions, keys string
	private       ed25519.PrivateKey
}

// networksTable maps the networks of the examples to their countries.
var networksTable = map[string]string{"192.0.2.0/24": "NL", "203.0.113.0/24": "DE"}

func newIdentityFiles(t *testing.T) *identityFiles {
	t.Helper()
	folder := t.TempDir()
	f := &identityFiles{regions: filepath.Join(folder, "country.mmdb"), keys: filepath.Join(folder, "keys.pem")}
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "GeoLite2-Country", IncludeReservedNetworks: true})
	if err != nil {
		t.Fatal(err)
	}
	for text, code := range networksTable {
		_, network, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Insert(network, mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String(code)}}); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Create(f.regions)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.WriteTo(file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	f.private = private
	if err := os.WriteFile(f.keys, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// use sets the files where the configuration names files.
func (f *identityFiles) use(id *config.Identity) {
	if id.RegionDB != "" {
		id.RegionDB = f.regions
	}
	if id.JWT.Keys != "" {
		id.JWT.Keys = f.keys
	}
}

// tokenForm matches {jwt tenant=acme}, a valid token with that claim, or with several. {old jwt tenant=acme} is an expired token.
var tokenForm = regexp.MustCompile(`\{(old )?jwt((?: [a-z]+=[a-z0-9/]+)+)\}`)

// fill replaces the short forms of tokens with tokens.
func (f *identityFiles) fill(t *testing.T, value string) string {
	t.Helper()
	found := tokenForm.FindStringSubmatch(value)
	if found == nil {
		return value
	}
	expires := 4_000_000_000
	if found[1] != "" {
		expires = 1
	}
	encode := base64.RawURLEncoding.EncodeToString
	all := map[string]any{"exp": expires}
	for claim := range strings.FieldsSeq(found[2]) {
		name, text, _ := strings.Cut(claim, "=")
		all[name] = text
	}
	claims, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	signed := encode([]byte(`{"alg":"EdDSA","typ":"JWT"}`)) + "." + encode(claims)
	token := fmt.Sprintf("%s.%s", signed, encode(ed25519.Sign(f.private, []byte(signed))))
	return strings.Replace(value, found[0], token, 1)
}
