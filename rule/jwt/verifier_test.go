package jwt_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha512"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	gojwt "github.com/golang-jwt/jwt/v5"

	"github.com/headgate/headgate/rule/jwt"
)

// TestEachAlgorithm checks that each algorithm works only with its own key, in both
// forms of a file.
func TestEachAlgorithm(t *testing.T) {
	all := algorithms()
	for _, a := range all {
		name, token := a.method.Alg(), issue(t, a, good)
		for form, file := range map[string][]byte{
			"JWKS":          jwks(jwk(a.key.Public(), nil)),
			"JWKS with alg": jwks(jwk(a.key.Public(), map[string]any{"alg": name, "use": "sig", "key_ops": []string{"verify"}})),
			"PEM":           pemOf(a.key.Public()),
			"PEM of two":    slices.Concat(pemOf(a.other.Public()), []byte("the old one\n"), pemOf(a.key.Public())),
		} {
			v := verifier(t, file, jwt.Config{})
			if !accepted(t, v, token) {
				t.Errorf("%s with its key in %s was refused", name, form)
				continue
			}
			claims, _ := v.Verify(token)
			if subject, found := claims.Lookup("sub"); subject != "ann" || !found {
				t.Errorf("%s: got subject %q, %v, want ann", name, subject, found)
			}
		}
		if accepted(t, verifier(t, pemOf(a.other.Public()), jwt.Config{}), token) {
			t.Errorf("%s was accepted with another key", name)
		}
		_, signed, _ := strings.Cut(token, ".")
		for _, b := range all {
			if name == b.method.Alg() {
				continue
			}
			lie := encode(fmt.Appendf(nil, `{"alg":%q}`, b.method.Alg())) + "." + signed
			both := slices.Concat(pemOf(a.key.Public()), pemOf(b.key.Public()))
			if accepted(t, verifier(t, both, jwt.Config{}), lie) {
				t.Errorf("a signature of %s was accepted as %s", name, b.method.Alg())
			}
		}
	}
}

// TestSecretsThatEveryoneKnows checks that tokens signed with the public key as a secret
// (HS256) are refused. Tokens without a signature are refused too.
func TestSecretsThatEveryoneKnows(t *testing.T) {
	k := keys()
	first := pemOf(k.rsa.Public())
	der, err := x509.MarshalPKIXPublicKey(k.rsa.Public())
	if err != nil {
		t.Fatal(err)
	}
	file := slices.Concat(first, pemOf(k.p256.Public()), pemOf(k.ed25519.Public()))
	v := verifier(t, file, jwt.Config{})
	for name, secret := range map[string][]byte{
		"the file": file, "its first key": first, "the key without its line break": first[:len(first)-1],
		"the DER": der, "the modulus": k.rsa.N.Bytes(), "Ed25519's key": k.ed25519[32:], "nothing": {},
	} {
		for _, method := range []*gojwt.SigningMethodHMAC{gojwt.SigningMethodHS256, gojwt.SigningMethodHS384, gojwt.SigningMethodHS512} {
			for _, says := range []string{method.Alg(), "RS256", "ES256", "EdDSA"} {
				if accepted(t, v, sign(t, method, secret, fmt.Sprintf(`{"alg":%q}`, says), good)) {
					t.Errorf("%s with %s as the secret was accepted as %s", method.Alg(), name, says)
				}
			}
		}
	}
	for _, says := range []string{`"none"`, `"None"`, `"NONE"`, `"nOnE"`, `""`, `null`, `0`, `["RS256"]`, `"RS256 "`, `"rs256"`, `"RS1"`, `"ES256K"`, `"Ed25519"`} {
		text := encode([]byte(`{"alg":`+says+`}`)) + "." + encode([]byte(good)) + "."
		for _, signature := range []string{"", encode([]byte("signed"))} {
			if accepted(t, v, text+signature) {
				t.Errorf("alg %s with signature %q was accepted", says, signature)
			}
		}
	}
}

// TestCurveOfAnotherAlgorithm checks a P-256 signature over a P-384 digest, padded to the
// length of P-384. The signature is mathematically valid but is not ES384.
func TestCurveOfAnotherAlgorithm(t *testing.T) {
	k := keys()
	text := encode([]byte(`{"alg":"ES384"}`)) + "." + encode([]byte(good))
	digest := sha512.Sum384([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, k.p256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 96)
	r.FillBytes(signature[:48])
	s.FillBytes(signature[48:])
	if gojwt.SigningMethodES384.Verify(text, signature, k.p256.Public()) != nil {
		t.Fatal("the test's own signature is wrong")
	}
	v := verifier(t, slices.Concat(pemOf(k.p256.Public()), pemOf(k.p384.Public())), jwt.Config{})
	if accepted(t, v, text+"."+encode(signature)) {
		t.Error("ES384 was accepted with a key of P-256")
	}
}

// TestWhichKey checks combinations of kid, alg and use in keys and tokens.
func TestWhichKey(t *testing.T) {
	k := keys()
	file := jwks(
		jwk(k.rsa.Public(), map[string]any{"kid": "one", "alg": "RS256"}),
		jwk(k.rsa2.Public(), map[string]any{"kid": "two"}),
		jwk(k.p256.Public(), map[string]any{"kid": "two"}), // two keys with one kid but of different kinds
		jwk(k.p256b.Public(), map[string]any{"kid": "old", "use": "enc"}),
		jwk(k.p384.Public(), nil),
	)
	v := verifier(t, file, jwt.Config{})
	rs256, rs384, ps256, es256, es384 := gojwt.SigningMethodRS256, gojwt.SigningMethodRS384, gojwt.SigningMethodPS256, gojwt.SigningMethodES256, gojwt.SigningMethodES384
	for _, c := range []struct {
		name    string
		method  gojwt.SigningMethod
		private crypto.Signer
		more    string // members of the header
		want    bool
	}{
		{"no kid: the first key", rs256, k.rsa, ``, true},
		{"no kid: the second key of the kind", rs256, k.rsa2, ``, true},
		{"no kid: the EC key", es256, k.p256, ``, true},
		{"no kid: a key that is not in the file", es256, k.p256b, ``, false},
		{"its kid", rs256, k.rsa, `,"kid":"one"`, true},
		{"another's kid", rs256, k.rsa, `,"kid":"two"`, false},
		{"the kid of another key, exchanged", rs256, k.rsa2, `,"kid":"one"`, false},
		{"a shared kid, RSA", rs256, k.rsa2, `,"kid":"two"`, true},
		{"a shared kid, EC", es256, k.p256, `,"kid":"two"`, true},
		{"an unknown kid and a named key", rs256, k.rsa, `,"kid":"three"`, false},
		{"an unknown kid and a key without a name", es384, k.p384, `,"kid":"three"`, true},
		{"a kid of another kind and a key without a name", es384, k.p384, `,"kid":"one"`, false},
		{"an empty kid", rs256, k.rsa, `,"kid":""`, true},
		{"a kid that is not a string", rs256, k.rsa, `,"kid":1`, false},
		{"a kid that is null", rs256, k.rsa, `,"kid":null`, false},
		{"a kid in a list", rs256, k.rsa, `,"kid":["one"]`, false},
		{"another algorithm than the key's alg", rs384, k.rsa, `,"kid":"one"`, false},
		{"padding other than the key's alg", ps256, k.rsa, ``, false},
		{"any algorithm of a key without alg", ps256, k.rsa2, `,"kid":"two"`, true},
		{"a key for encryption", es256, k.p256b, `,"kid":"old"`, false},
		{"a type", rs256, k.rsa, `,"typ":"at+jwt"`, true},
		{"a required extension", rs256, k.rsa, `,"crit":["exp"],"exp":1`, false},
		{"required b64", rs256, k.rsa, `,"crit":["b64"],"b64":true`, false},
		{"an empty list of required extensions", rs256, k.rsa, `,"crit":[]`, false},
		{"crit is null", rs256, k.rsa, `,"crit":null`, false},
	} {
		token := sign(t, c.method, c.private, fmt.Sprintf(`{"alg":%q%s}`, c.method.Alg(), c.more), good)
		if got := accepted(t, v, token); got != c.want {
			t.Errorf("%s: accepted = %v, want %v", c.name, got, c.want)
		}
	}
	// A key in the token's own header is ignored.
	own, err := json.Marshal(jwk(k.p256b.Public(), nil))
	if err != nil {
		t.Fatal(err)
	}
	if accepted(t, v, sign(t, es256, k.p256b, fmt.Sprintf(`{"alg":"ES256","jwk":%s}`, own), good)) {
		t.Error("a token was accepted with the key in its own header")
	}
}

// TestMalformed checks texts that are not tokens or not in canonical encoding.
func TestMalformed(t *testing.T) {
	a := algorithms()[9]
	token := issue(t, a, good)
	v := verifier(t, pemOf(a.key.Public()), jwt.Config{})
	parts := strings.Split(token, ".")
	last := func(part string) string { // the last character has unused bits
		i := strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", part[len(part)-1])
		return part[:len(part)-1] + "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[i+1:i+2]
	}
	if len(parts[2])%4 == 0 {
		t.Fatal("the signature has no unused bits")
	}
	long := issue(t, a, `{"exp":1800003600,"pad":"`+strings.Repeat("x", 6200)+`"}`)
	for name, text := range map[string]string{
		"nothing":                          "",
		"a word":                           "token",
		"dots":                             "..",
		"more dots":                        "....",
		"two parts":                        parts[0] + "." + parts[1],
		"four parts":                       token + "." + parts[2],
		"no header":                        "." + parts[1] + "." + parts[2],
		"no claims":                        parts[0] + ".." + parts[2],
		"no signature":                     parts[0] + "." + parts[1] + ".",
		"its scheme":                       "Bearer " + token,
		"space before":                     " " + token,
		"a line break at the end":          token + "\n",
		"a line break inside":              parts[0] + "." + parts[1] + ".\n" + parts[2],
		"a carriage return inside":         parts[0] + "\r." + parts[1] + "." + parts[2],
		"padding":                          token + "==",
		"spare bits":                       parts[0] + "." + parts[1] + "." + last(parts[2]),
		"standard base64":                  parts[0] + "." + parts[1] + "." + strings.NewReplacer("-", "+", "_", "/").Replace(parts[2]) + "+",
		"a NUL":                            token + "\x00",
		"more than 8 KiB":                  long,
		"a hundred thousand":               strings.Repeat("a.", 50_000),
		"JSON serialization":               `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"a header that is null":            encode([]byte("null")) + "." + parts[1] + "." + parts[2],
		"a header that is a list":          encode([]byte("[]")) + "." + parts[1] + "." + parts[2],
		"a header that is not JSON":        encode([]byte("{")) + "." + parts[1] + "." + parts[2],
		"a header with text after its end": encode([]byte(`{"alg":"EdDSA"}{}`)) + "." + parts[1] + "." + parts[2],
	} {
		if accepted(t, v, text) {
			t.Errorf("%s was accepted: %.80q", name, text)
		}
	}
	if len(long) <= 8<<10 {
		t.Errorf("the long token has %d bytes", len(long))
	}
	fits := issue(t, a, `{"exp":1800003600,"pad":"`+strings.Repeat("x", 6000)+`"}`)
	if len(fits) > 8<<10 || !accepted(t, v, fits) || !accepted(t, v, token) {
		t.Error("a token of the maximum length was refused")
	}
}

// TestConcurrentUse is for the race detector. It uses valid and invalid tokens, and a
// cache that is too small for them.
func TestConcurrentUse(t *testing.T) {
	a := algorithms()[9]
	v := verifier(t, pemOf(a.key.Public()), jwt.Config{MaxCached: 20})
	var tokens []string
	for i := range 40 {
		tokens = append(tokens, issue(t, a, fmt.Sprintf(`{"sub":"user%d","exp":1800003600}`, i)))
	}
	bad := tokens[0][:len(tokens[0])-20] + tokens[1][len(tokens[1])-20:]
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 200 {
				n := (i*(worker+1) + worker) % len(tokens)
				claims, ok := v.Verify(tokens[n])
				if !ok {
					t.Errorf("token %d was refused", n)
					return
				}
				if subject, _ := claims.Lookup("sub"); subject != fmt.Sprintf("user%d", n) {
					t.Errorf("token %d: got subject %q", n, subject)
				}
				if _, ok := v.Verify(bad); ok {
					t.Error("an invalid token was accepted")
				}
			}
		})
	}
	all.Wait()
}
