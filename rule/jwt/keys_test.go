package jwt_test

import (
	"crypto"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/rule/jwt"
)

func block(kind string, der []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// certificate returns a self-signed certificate that has expired.
func certificate(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	certificate := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "issuer"}, NotBefore: time.Unix(1, 0), NotAfter: time.Unix(2, 0)}
	der, err := x509.CreateCertificate(rand.Reader, certificate, certificate, key.Public(), key)
	return block("CERTIFICATE", der, err)
}

// TestGoodFiles checks each form of a key file with a token of its key.
func TestGoodFiles(t *testing.T) {
	k, all := keys(), algorithms()
	rs256, es256, eddsa := all[0], all[6], all[9]
	unused := []map[string]any{
		jwk(k.rsa2.Public(), map[string]any{"use": "enc"}),
		jwk(k.rsa2.Public(), map[string]any{"alg": "RSA-OAEP-256"}),
		jwk(k.rsa2.Public(), map[string]any{"key_ops": []string{"encrypt"}}),
		{"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"},
		{"kty": "OKP", "crv": "X25519", "x": "AA"},
		{"kty": "AKP", "alg": "ML-DSA-44", "pub": "AA"},
		{"kty": "new"},
	}
	for name, c := range map[string]struct {
		file []byte
		by   algorithm
	}{
		"PKCS #1":                  {block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&k.rsa.PublicKey), nil), rs256},
		"an expired certificate":   {certificate(t, k.p256), es256},
		"a chain":                  {slices.Concat(certificate(t, k.ed25519), certificate(t, k.rsa)), rs256},
		"text around":              {slices.Concat([]byte("issuer's key\n"), pemOf(eddsa.key.Public()), []byte("end\n")), eddsa},
		"Windows' lines":           {[]byte(strings.ReplaceAll(string(pemOf(rs256.key.Public())), "\n", "\r\n")), rs256},
		"space around JSON":        {slices.Concat([]byte("\n "), jwks(jwk(es256.key.Public(), nil)), []byte("\n")), es256},
		"further members":          {jwks(jwk(es256.key.Public(), map[string]any{"x5c": []string{"AA"}, "x5t": "AA", "ext": true})), es256},
		"keys that are not for us": {jwks(append(unused, jwk(rs256.key.Public(), nil))...), rs256},
	} {
		if !accepted(t, verifier(t, c.file, jwt.Config{}), issue(t, c.by, good)) {
			t.Errorf("%s: a token of its key was refused", name)
		}
	}
}

// TestFaultyKeys checks that an error names the key, the fault and the remedy.
func TestFaultyKeys(t *testing.T) {
	k := keys()
	der := func(key any) []byte {
		data, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	public := func(key any) []byte {
		data, err := x509.MarshalPKIXPublicKey(key)
		return block("PUBLIC KEY", data, err)
	}
	x25519, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := x509.MarshalECPrivateKey(k.p256)
	if err != nil {
		t.Fatal(err)
	}
	set := func(public crypto.PublicKey, name string, value any) []byte {
		return jwks(jwk(k.p256.Public(), nil), jwk(public, map[string]any{name: value}))
	}
	even := rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 2047), E: 65537}
	crowd := make([]map[string]any, 33)
	for i := range crowd {
		crowd[i] = jwk(k.ed25519.Public(), map[string]any{"kid": fmt.Sprint(i)})
	}
	for _, c := range []struct {
		name string
		file []byte
		want []string
	}{
		{"nothing", nil, []string{"the file is empty", "JWKS or PEM"}},
		{"space", []byte(" \n"), []string{"the file is empty"}},
		{"a word", []byte("secret"), []string{"neither JWKS nor PEM", `{"keys": [...]}`, "BEGIN PUBLIC KEY"}},
		{"too long", []byte(strings.Repeat("x", 1<<20+1)), []string{"longer than 1048576 bytes"}},
		{"broken JSON", []byte(`{"keys": [`), []string{"not a JWKS", `write {"keys": [...]}`}},
		{"a list", []byte(`[]`), []string{"not a JWKS", `write {"keys": [...]}`}},
		{"a key without a set", []byte(`{"kty":"RSA"}`), []string{"has no keys", `write {"keys": [...]}`}},
		{"a set of none", jwks(), []string{"has no keys"}},
		{"no object", []byte(`{"keys":["RSA"]}`), []string{"keys[0] is not a valid key"}},
		{"a key of another shape", []byte(`{"keys":[{"kty":1}]}`), []string{"keys[0] is not a valid key"}},
		{"for encryption", jwks(jwk(k.rsa.Public(), map[string]any{"use": "enc"})), []string{"no key that verifies tokens", `keys[0] has use "enc"`, "use sig"}},
		{"for nothing", jwks(jwk(k.rsa.Public(), map[string]any{"key_ops": []string{}})), []string{"keys[0] has key_ops without verify"}},
		{"for another algorithm", jwks(jwk(k.rsa.Public(), map[string]any{"alg": "RSA-OAEP"})), []string{`keys[0] is for alg "RSA-OAEP"`}},
		{"for HS256", jwks(jwk(k.rsa.Public(), map[string]any{"alg": "HS256"})), []string{`keys[0] is for alg "HS256"`}},
		{"of another kind", jwks(map[string]any{"kty": "OKP", "crv": "Ed448", "x": "AA"}), []string{`keys[0] has the unsupported kind "OKP" "Ed448"`, "Ed25519"}},
		{"an alg for another kind of key", set(k.rsa.Public(), "alg", "ES256"), []string{`keys[1] has alg "ES256"`, "RS256 RS384"}},
		{"an alg of another curve", set(k.p384.Public(), "alg", "ES256"), []string{`keys[1] has alg "ES256"`, "write one of ES384"}},
		{"a symmetric key", jwks(map[string]any{"kty": "oct", "k": "c2VjcmV0"}), []string{"keys[0] is a symmetric key", "RS256"}},
		{"a symmetric key without its bytes", jwks(map[string]any{"kty": "oct"}), []string{"keys[0] is a symmetric key"}},
		{"a private key", set(k.rsa.Public(), "d", "AA"), []string{"keys[1] is a private key", `"d"`, "remove d p q"}},
		{"a private key of a kind not used", jwks(map[string]any{"kty": "AKP", "priv": "AA"}), []string{"keys[0] is a private key"}},
		{"a weak key", set(k.weak.Public(), "kid", "a"), []string{"keys[1] is an RSA key of 1024 bits", "2048"}},
		{"a key of too many bits", set(&rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 9000), E: 3}, "kid", "a"), []string{"keys[1] cannot be read", "modulus too large", "above 4096 bits as PEM"}},
		{"an even modulus", set(&even, "kid", "a"), []string{"keys[1] is not a valid RSA key"}},
		{"an exponent of 1", set(k.rsa.Public(), "e", "AQ"), []string{"keys[1] cannot be read", "bad e value"}},
		{"a large exponent", set(k.rsa.Public(), "e", "AQAAAAE"), []string{"keys[1] is not a valid RSA key"}},
		{"no modulus", set(k.rsa.Public(), "n", ""), []string{"keys[1] cannot be read", "missing n/e", "as the issuer published it"}},
		{"no exponent", set(k.rsa.Public(), "e", nil), []string{"keys[1] cannot be read", "missing n/e"}},
		{"standard base64", set(k.rsa.Public(), "n", "+/=="), []string{"keys[1] cannot be read", "illegal base64"}},
		{"a short coordinate", set(k.p256.Public(), "x", "AA"), []string{"keys[1] cannot be read", "wrong length for x"}},
		{"no coordinate", set(k.p256.Public(), "y", ""), []string{"keys[1] cannot be read", "missing x/y"}},
		{"no point", set(k.p256.Public(), "y", encode(make([]byte, 32))), []string{"keys[1] cannot be read", "not on declared curve"}},
		{"a short Ed25519 key", set(k.ed25519.Public(), "x", "AA"), []string{"keys[1] cannot be read", "wrong length for x"}},
		{"an Ed25519 key of low order", set(k.ed25519.Public(), "x", encode(append([]byte{1}, make([]byte, 31)...))), []string{"keys[1] cannot be read", "low-order"}},
		{"too many", jwks(crowd...), []string{"has 33 keys", "the maximum is 32"}},

		{"a private key in PEM", block("PRIVATE KEY", der(k.rsa), nil), []string{"block 1", "is a private key", "openssl pkey -in KEY -pubout"}},
		{"a private key in PKCS #1", slices.Concat(pemOf(k.rsa.Public()), block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k.rsa), nil)), []string{"block 2", "is a private key"}},
		{"a private key in SEC 1", block("EC PRIVATE KEY", ec, nil), []string{"is a private key"}},
		{"an encrypted private key", block("ENCRYPTED PRIVATE KEY", []byte("x"), nil), []string{"is a private key"}},
		{"another block", block("CERTIFICATE REQUEST", []byte("x"), nil), []string{`block 1 ("CERTIFICATE REQUEST")`, "neither a public key nor a certificate", "BEGIN PUBLIC KEY"}},
		{"garbage in a block", block("PUBLIC KEY", []byte("x"), nil), []string{"block 1", "cannot be read"}},
		{"garbage in a certificate", block("CERTIFICATE", []byte("x"), nil), []string{"block 1", "cannot be read"}},
		{"a weak key in PEM", public(k.weak.Public()), []string{"block 1", "1024 bits", "2048"}},
		{"a key of too many bits in PEM", public(&rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 9000), E: 3}), []string{"block 1", "of 9001 bits", "8192"}},
		{"a weak key in a certificate", certificate(t, k.weak), []string{"block 1", "1024 bits"}},
		{"a curve not used", public(k.p224.Public()), []string{"block 1", "has an unsupported kind", "P-256"}},
		{"a key for encryption in PEM", public(x25519.PublicKey()), []string{"block 1", "has an unsupported kind"}},
		{"a block cut short", slices.Concat(pemOf(k.p256.Public()), pemOf(k.p384.Public())[:80]), []string{"has 2 blocks, and 1 can be read", "write the other blocks completely"}},
		{"a block of invalid base64", []byte("-----BEGIN PUBLIC KEY-----\n!!!\n-----END PUBLIC KEY-----\n"), []string{"has 1 blocks, and 0 can be read"}},
	} {
		v, err := jwt.New(c.file, jwt.Config{})
		if err == nil || v != nil {
			t.Errorf("a file of %s was accepted", c.name)
			continue
		}
		for _, want := range append(c.want, "jwt: ", ": ") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("a file of %s: the error %q does not say %q", c.name, err, want)
			}
		}
	}
}

func TestFaultyConfig(t *testing.T) {
	file := pemOf(keys().p256.Public())
	for want, c := range map[string]jwt.Config{
		"leeway -1s is negative: use 0 or more":          {Leeway: -time.Second},
		"MaxCached of 1048577 is too large: use at most": {MaxCached: 1<<20 + 1},
	} {
		if _, err := jwt.New(file, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: got error %v, want %q", err, want)
		}
		if _, err := jwt.Open("none.pem", c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open: got error %v, want %q", err, want)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	a := algorithms()[9]
	file := write("keys.pem", pemOf(a.key.Public()))
	link := filepath.Join(dir, "link.pem") // Kubernetes mounts secrets as links
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, link} {
		v, err := jwt.Open(name, jwt.Config{Clock: func() time.Time { return time.Unix(today, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		if !accepted(t, v, issue(t, a, good)) {
			t.Errorf("%s: a token of its key was refused", name)
		}
	}
	for name, want := range map[string][]string{
		filepath.Join(dir, "none.pem"):           {"no such file", "put the issuer's public keys there"},
		dir:                                      {"not a regular file"},
		"/dev/zero":                              {"not a regular file"},
		write("long.pem", make([]byte, 1<<20+1)): {"long.pem: the file is longer than"},
		write("private.json", jwks(jwk(a.key.Public(), map[string]any{"d": "AA"}))): {"private.json: keys[0] is a private key"},
		write("curve.pem", pemOf(keys().p224.Public())):                             {"curve.pem: block 1"},
	} {
		_, err := jwt.Open(name, jwt.Config{})
		for _, want := range append(want, "jwt: ") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got error %v, want %q", name, err, want)
			}
		}
	}
	// The machine's clock is after 2001 and before 5138.
	v, err := jwt.Open(file, jwt.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if accepted(t, v, issue(t, a, `{"exp":1000000000}`)) || !accepted(t, v, issue(t, a, `{"exp":100000000000}`)) {
		t.Error("without a Clock, the Verifier does not use the machine's clock")
	}
}
