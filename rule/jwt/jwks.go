package jwt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
)

// The members of a key that only its owner should have (RFC 7518, section 6).
var privateNames = [...]string{"d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"}

// jwk is a key as it stands in a set (RFC 7517, section 4). Further members, among
// them certificates, do not count.
type jwk struct {
	Type       string   `json:"kty"`
	ID         string   `json:"kid"`
	Algorithm  string   `json:"alg"`
	Use        string   `json:"use"`
	Operations []string `json:"key_ops"`
	Curve      string   `json:"crv"`
	N          string   `json:"n"`
	E          string   `json:"e"`
	X          string   `json:"x"`
	Y          string   `json:"y"`
}

// parseJWKS reads a set of keys. As RFC 7517, section 5, says, keys of other kinds
// or for other uses are passed over; faulty keys are errors, so that none is
// missed unnoticed.
func parseJWKS(data []byte) ([]key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf(`the file is no JWKS (%w): write {"keys": [...]}`, err)
	}
	if len(set.Keys) == 0 {
		return nil, errors.New(`the file has no keys: write {"keys": [...]}, with the issuer's public keys in the list`)
	}
	var keys []key
	var passed []string
	for i, raw := range set.Keys {
		k, reason, err := parseJWK(raw)
		switch {
		case err != nil:
			return nil, fmt.Errorf("keys[%d] %w", i, err)
		case reason != "":
			passed = append(passed, fmt.Sprintf("keys[%d] %s", i, reason))
		default:
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("the file has no key that verifies tokens (%s): "+
			"use keys of RSA, EC (P-256, P-384, P-521) or Ed25519 with use sig", strings.Join(passed[:min(len(passed), 3)], ", "))
	}
	return keys, nil
}

// parseJWK reads one key. A reason is why it is passed over.
func parseJWK(raw json.RawMessage) (k key, reason string, err error) {
	if err := checkPublic(raw); err != nil {
		return key{}, "", err
	}
	var j jwk
	if err := json.Unmarshal(raw, &j); err != nil {
		return key{}, "", fmt.Errorf("is no key (%w): write it as the issuer published it", err)
	}
	if reason := j.unused(); reason != "" {
		return key{}, reason, nil
	}
	public, err := j.public()
	if err == nil {
		err = checkStrength(public)
	}
	if err != nil {
		return key{}, "", err
	}
	if fit := algorithmsOf(public); j.Algorithm != "" && !slices.Contains(fit, j.Algorithm) {
		return key{}, "", fmt.Errorf("has alg %q, which is not for keys of its kind: write one of %s, or leave alg out",
			j.Algorithm, strings.Join(fit, " "))
	}
	return key{public, j.ID, j.Algorithm}, "", nil
}

// checkPublic refuses keys that are secrets, whatever their kind.
func checkPublic(raw json.RawMessage) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return fmt.Errorf("is no key (%w): write it as the issuer published it", err)
	}
	if _, symmetric := members["k"]; symmetric || string(members["kty"]) == `"oct"` {
		return errors.New("is a symmetric key, with which anyone who verifies can sign too: let the issuer sign with RS256, ES256 or EdDSA")
	}
	for _, name := range privateNames {
		if _, found := members[name]; found {
			return fmt.Errorf("is a private key (it has %q), and only its owner should have it: leave out %s",
				name, strings.Join(privateNames[:], " "))
		}
	}
	return nil
}

// unused says why a key is passed over, "" for one that is used.
func (j *jwk) unused() string {
	switch {
	case j.Use != "" && j.Use != "sig":
		return fmt.Sprintf("has use %.20q", j.Use)
	case j.Operations != nil && !slices.Contains(j.Operations, "verify"):
		return "has key_ops without verify"
	case j.Type == "RSA":
	case j.Type == "EC" && curveOf(j.Curve) != nil:
	case j.Type == "OKP" && j.Curve == "Ed25519":
	default:
		return fmt.Sprintf("is of kind %.20q %.20q", j.Type, j.Curve)
	}
	if j.Algorithm != "" && !slices.Contains(algorithmNames[:], j.Algorithm) {
		return fmt.Sprintf("is for alg %.20q", j.Algorithm)
	}
	return ""
}

// curveOf gives the curve of a name, nil for those not used.
func curveOf(name string) elliptic.Curve {
	switch name {
	case "P-256":
		return elliptic.P256()
	case "P-384":
		return elliptic.P384()
	case "P-521":
		return elliptic.P521()
	}
	return nil
}

// public makes the key of its numbers.
func (j *jwk) public() (crypto.PublicKey, error) {
	switch j.Type {
	case "RSA":
		return j.rsa()
	case "EC":
		return j.ecdsa()
	}
	x, err := number("x", j.X, ed25519.PublicKeySize)
	if err != nil {
		return nil, err
	}
	return ed25519.PublicKey(x), nil
}

func (j *jwk) rsa() (*rsa.PublicKey, error) {
	modulus, err := number("n", j.N, 0)
	if err != nil {
		return nil, err
	}
	exponent, err := number("e", j.E, 0)
	if err != nil {
		return nil, err
	}
	e := new(big.Int).SetBytes(exponent)
	if e.BitLen() > 31 {
		return nil, fmt.Errorf("has an exponent e above %d: use the issuer's key as it was published", math.MaxInt32)
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(modulus), E: int(e.Int64())}, nil
}

func (j *jwk) ecdsa() (*ecdsa.PublicKey, error) {
	curve := curveOf(j.Curve)
	size := (curve.Params().BitSize + 7) / 8
	x, err := number("x", j.X, size)
	if err != nil {
		return nil, err
	}
	y, err := number("y", j.Y, size)
	if err != nil {
		return nil, err
	}
	const uncompressed = 4 // SEC 1, section 2.3.3
	public, err := ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{uncompressed}, x, y))
	if err != nil {
		return nil, fmt.Errorf("is no point of %s (%w): use the issuer's key as it was published", j.Curve, err)
	}
	return public, nil
}

// number decodes a member that is a number in base64url; a size of 0 is any.
func number(name, text string, size int) ([]byte, error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("has an %s that is no base64url (%w): write it without + / = and line breaks", name, err)
	case len(data) == 0:
		return nil, fmt.Errorf("has no %s: write the key as the issuer published it", name)
	case size != 0 && len(data) != size:
		return nil, fmt.Errorf("has an %s of %d bytes, and it takes %d: write the key as the issuer published it", name, len(data), size)
	}
	return data, nil
}
