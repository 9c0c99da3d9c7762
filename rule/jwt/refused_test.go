package jwt_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"

	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule/jwt"
)

// many returns keys of P-521, the curve with the slowest signatures.
func many(t *testing.T, n int) []*ecdsa.PrivateKey {
	t.Helper()
	keys := make([]*ecdsa.PrivateKey, n)
	for i := range keys {
		var err error
		if keys[i], err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// TestFourKeysAreTried checks that a token without a kid is accepted if one of the first
// four keys signed it. A refused token costs at most four signatures.
func TestFourKeysAreTried(t *testing.T) {
	keys := many(t, 32)
	members := make([]map[string]any, len(keys))
	for i, k := range keys {
		members[i] = jwk(k.Public(), map[string]any{"kid": fmt.Sprint(i)})
	}
	members[31]["kid"] = "" // The key without a kid comes first, because it most likely signed a token without a kid.
	v := verifier(t, jwks(members...), jwt.Config{})
	for i, k := range keys {
		want := slices.Contains([]int{31, 0, 1, 2}, i)
		if got := accepted(t, v, sign(t, gojwt.SigningMethodES512, k, `{"alg":"ES512"}`, good)); got != want {
			t.Errorf("a token without kid by key %d: accepted = %v, want %v", i, got, want)
		}
		if i != 31 && !accepted(t, v, sign(t, gojwt.SigningMethodES512, k, fmt.Sprintf(`{"alg":"ES512","kid":"%d"}`, i), good)) {
			t.Errorf("a token with the kid of key %d was refused", i)
		}
	}
}

// TestKeysThatNoTokenNames checks that a fifth key with one kid is an error, because no
// token would use it.
func TestKeysThatNoTokenNames(t *testing.T) {
	keys := many(t, 5)
	var file []byte
	members := make([]map[string]any, len(keys))
	for i, k := range keys {
		file = append(file, pemOf(k.Public())...)
		members[i] = jwk(k.Public(), map[string]any{"kid": "a"})
	}
	for _, text := range [][]byte{file, jwks(members...)} {
		_, err := jwt.New(text, jwt.Config{})
		if err == nil || !strings.Contains(err.Error(), "5 keys for ES512") || !strings.Contains(err.Error(), "a kid for each") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := jwt.New(jwks(members[:4]...), jwt.Config{}); err != nil {
		t.Error(err)
	}
}

// TestRefusedAreRemembered checks that a refused token costs no signature and no
// allocation for ten seconds. A token that was refused before its nbf is accepted later.
func TestRefusedAreRemembered(t *testing.T) {
	a := algorithms()[9]
	now := time.Unix(today, 0)
	v := verifier(t, pemOf(a.key.Public()), jwt.Config{Issuer: "i", Clock: func() time.Time { return now }})
	invented := issue(t, a, `{"exp":1800003600,"iss":"i"}`)
	invented = invented[:len(invented)-8] + encode([]byte("000000"))
	another := issue(t, a, `{"exp":1800003600,"iss":"j"}`)
	for what, token := range map[string]string{"a forged signature": invented, "another issuer": another} {
		verify := func() {
			if _, ok := v.Verify(token); ok {
				t.Errorf("%s was accepted", what)
			}
		}
		verify()
		if n := testing.AllocsPerRun(10, verify); n != 0 && !race.On {
			t.Errorf("%s: a second refusal has %v allocations, want 0", what, n)
		}
		now = now.Add(10 * time.Second)
		if n := testing.AllocsPerRun(1, func() { now = now.Add(10 * time.Second); verify() }); n == 0 {
			t.Errorf("%s: the refusal was cached for more than ten seconds", what)
		}
	}
	early := issue(t, a, fmt.Sprintf(`{"exp":1800003600,"iss":"i","nbf":%d}`, now.Unix()+1))
	if accepted(t, v, early) {
		t.Error("a token was accepted before its nbf")
	}
	now = now.Add(time.Second)
	if !accepted(t, v, early) {
		t.Error("a token was refused after its nbf")
	}
}

// TestFloodOfRefused checks that any number of refused tokens evicts no valid token.
func TestFloodOfRefused(t *testing.T) {
	a := algorithms()[9]
	v := verifier(t, pemOf(a.key.Public()), jwt.Config{MaxCached: 16})
	token := issue(t, a, good)
	if !accepted(t, v, token) {
		t.Fatal("a valid token was refused")
	}
	for i := range 5000 {
		if _, ok := v.Verify(token[:len(token)-8] + encode(fmt.Appendf(nil, "%06d", i))); ok {
			t.Fatal("an invalid token was accepted")
		}
	}
	if n := testing.AllocsPerRun(10, func() { v.Verify(token) }); n != 0 && !race.On {
		t.Errorf("after the flood, a valid token has %v allocations, want 0", n)
	}
}
