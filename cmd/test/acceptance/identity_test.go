package acceptance

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/json"
	"net"
	"os/exec"
	"testing"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"
	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// countries makes a database with the countries of networks.
func countries(t *testing.T, networks map[string]string) []byte {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "GeoLite2-Country", IncludeReservedNetworks: true})
	if err != nil {
		t.Fatal(err)
	}
	for text, code := range networks {
		_, network, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Insert(network, mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String(code)}}); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if _, err := tree.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// issuer signs tokens with a key that has a name in key sets.
type issuer struct {
	id  string
	key *ecdsa.PrivateKey
}

func newIssuer(t *testing.T, id string) *issuer {
	t.Helper()
	return &issuer{id, privateKey(t)}
}

// token gives a token for a tenant that expires at a time.
func (s *issuer) token(t *testing.T, tenant string, expires time.Time) string {
	t.Helper()
	token := gojwt.NewWithClaims(gojwt.SigningMethodES256, gojwt.MapClaims{
		"iss": "https://login.example.com", "aud": "api.example.com", "tenant": tenant, "exp": expires.Unix(),
	})
	token.Header["kid"] = s.id
	text, err := token.SignedString(s.key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// keySet writes the public keys of issuers as a JWKS.
func keySet(t *testing.T, issuers ...*issuer) []byte {
	t.Helper()
	var keys []map[string]string
	for _, s := range issuers {
		point, err := s.key.PublicKey.Bytes() // a byte 4, then x and y
		if err != nil {
			t.Fatal(err)
		}
		encode := base64.RawURLEncoding.EncodeToString
		keys = append(keys, map[string]string{
			"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": s.id,
			"x": encode(point[1:33]), "y": encode(point[33:]),
		})
	}
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// command runs an installed program and waits for its end.
func command(t *testing.T, name string, args ...string) (out []byte, err error) {
	t.Helper()
	return exec.CommandContext(t.Context(), tool(t, name, name), args...).CombinedOutput()
}
