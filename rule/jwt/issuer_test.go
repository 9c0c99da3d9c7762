package jwt_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"sync"
	"testing"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"

	"github.com/headgate/headgate/rule/jwt"
)

// issuer has a private key of each kind, and a second key of RSA and of P-256.
type issuer struct {
	rsa, rsa2               *rsa.PrivateKey
	p256, p256b, p384, p521 *ecdsa.PrivateKey
	ed25519, ed25519b       ed25519.PrivateKey
	weak                    *rsa.PrivateKey // 1024 bits
	p224                    *ecdsa.PrivateKey
}

// keys generates the issuer's keys once for all tests, because RSA keys take time.
var keys = sync.OnceValue(func() issuer {
	must := func(key any, err error) any {
		if err != nil {
			panic(err)
		}
		return key
	}
	makeRSA := func(bits int) *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, bits)).(*rsa.PrivateKey) }
	makeEC := func(curve elliptic.Curve) *ecdsa.PrivateKey {
		return must(ecdsa.GenerateKey(curve, rand.Reader)).(*ecdsa.PrivateKey)
	}
	_, one, err := ed25519.GenerateKey(rand.Reader)
	must(one, err)
	_, two, err := ed25519.GenerateKey(rand.Reader)
	must(two, err)
	return issuer{
		rsa: makeRSA(2048), rsa2: makeRSA(2048), weak: makeRSA(1024),
		p256: makeEC(elliptic.P256()), p256b: makeEC(elliptic.P256()), p384: makeEC(elliptic.P384()), p521: makeEC(elliptic.P521()),
		p224:    makeEC(elliptic.P224()),
		ed25519: one, ed25519b: two,
	}
})

// algorithm is an accepted algorithm and a key for it.
type algorithm struct {
	method     gojwt.SigningMethod
	key, other crypto.Signer // other is a second key of the same kind, or a key of another kind
}

func algorithms() []algorithm {
	k := keys()
	return []algorithm{
		{gojwt.SigningMethodRS256, k.rsa, k.rsa2},
		{gojwt.SigningMethodRS384, k.rsa, k.rsa2},
		{gojwt.SigningMethodRS512, k.rsa, k.rsa2},
		{gojwt.SigningMethodPS256, k.rsa, k.rsa2},
		{gojwt.SigningMethodPS384, k.rsa, k.rsa2},
		{gojwt.SigningMethodPS512, k.rsa, k.rsa2},
		{gojwt.SigningMethodES256, k.p256, k.p256b},
		{gojwt.SigningMethodES384, k.p384, k.p256b},
		{gojwt.SigningMethodES512, k.p521, k.p256b},
		{gojwt.SigningMethodEdDSA, k.ed25519, k.ed25519b},
	}
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// sign returns a token with any header and claims. private is the key for the method.
func sign(tb testing.TB, method gojwt.SigningMethod, private any, header, claims string) string {
	tb.Helper()
	text := encode([]byte(header)) + "." + encode([]byte(claims))
	signature, err := method.Sign(text, private)
	if err != nil {
		tb.Fatal(err)
	}
	return text + "." + encode(signature)
}

// issue returns a token with a header that has only the algorithm.
func issue(tb testing.TB, a algorithm, claims string) string {
	tb.Helper()
	return sign(tb, a.method, a.key, fmt.Sprintf(`{"alg":%q}`, a.method.Alg()), claims)
}

// jwk encodes a public key as a JWK.
func jwk(public crypto.PublicKey, members map[string]any) map[string]any {
	key := map[string]any{}
	switch public := public.(type) {
	case *rsa.PublicKey:
		key["kty"], key["n"], key["e"] = "RSA", encode(public.N.Bytes()), encode(big.NewInt(int64(public.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := public.Bytes()
		if err != nil {
			panic(err)
		}
		half := len(point) / 2
		key["kty"], key["crv"], key["x"], key["y"] = "EC", public.Params().Name, encode(point[1:1+half]), encode(point[1+half:])
	case ed25519.PublicKey:
		key["kty"], key["crv"], key["x"] = "OKP", "Ed25519", encode(public)
	}
	maps.Copy(key, members)
	return key
}

// jwks encodes a JWKS.
func jwks(keys ...map[string]any) []byte {
	data, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		panic(err)
	}
	return data
}

// pemOf encodes a public key in PEM, as openssl does.
func pemOf(public crypto.PublicKey) []byte {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// today is the time of the tests' clock: 2027-01-15 08:00:00 UTC.
const today = 1_800_000_000

func verifier(tb testing.TB, keys []byte, c jwt.Config) *jwt.Verifier {
	tb.Helper()
	if c.Clock == nil {
		c.Clock = func() time.Time { return time.Unix(today, 0) }
	}
	v, err := jwt.New(keys, c)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// good has claims that expire an hour after today.
const good = `{"sub":"ann","exp":1800003600}`

// accepted reports whether a token is valid. accepted also checks that a second Verify gives
// the same result.
func accepted(tb testing.TB, v *jwt.Verifier, token string) bool {
	tb.Helper()
	claims, ok := v.Verify(token)
	again, okAgain := v.Verify(token)
	if ok != okAgain || (claims == nil) == ok || (again == nil) == ok {
		tb.Errorf("%.60q: first Verify gives %v, and the second gives %v", token, ok, okAgain)
	}
	return ok
}
