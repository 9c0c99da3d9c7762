package jwt

import (
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// privateNames are the members that only private or secret keys have (RFC 7518,
// section 6).
var privateNames = [...]string{"d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"}

// curveNames are the elliptic curves of the accepted algorithms.
var curveNames = [...]string{"P-256", "P-384", "P-521"}

// jwk has the members of a key (RFC 7517, section 4) that this package reads. jwk ignores
// other members such as certificates, because go-jose refuses a key for an invalid one.
type jwk struct {
	Type       string   `json:"kty"`
	ID         string   `json:"kid"`
	Algorithm  string   `json:"alg"`
	Use        string   `json:"use"`
	Operations []string `json:"key_ops"`
	Curve      string   `json:"crv,omitempty"`
	N          string   `json:"n,omitempty"`
	E          string   `json:"e,omitempty"`
	X          string   `json:"x,omitempty"`
	Y          string   `json:"y,omitempty"`
}

// parseJWKS parses a set of keys. parseJWKS skips keys of other kinds and for other uses (RFC
// 7517, section 5). An invalid key is an error, so that the operator notices it.
func parseJWKS(data []byte) ([]key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf(`the file is not a JWKS (%w): write {"keys": [...]}`, err)
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

// parseJWK parses one key. A reason says why the key is skipped.
func parseJWK(raw json.RawMessage) (k key, reason string, err error) {
	if err := checkPublic(raw); err != nil {
		return key{}, "", err
	}
	var j jwk
	if err := json.Unmarshal(raw, &j); err != nil {
		return key{}, "", fmt.Errorf("is not a valid key (%w): write it as the issuer published it", err)
	}
	if reason := j.unused(); reason != "" {
		return key{}, reason, nil
	}
	public, err := j.public()
	if err != nil {
		return key{}, "", err
	}
	if fit := algorithmsOf(public); j.Algorithm != "" && !slices.Contains(fit, j.Algorithm) {
		return key{}, "", fmt.Errorf("has alg %q, which is not for keys of its kind: write one of %s, or remove alg",
			j.Algorithm, strings.Join(fit, " "))
	}
	return key{public, j.ID, j.Algorithm}, "", nil
}

// checkPublic refuses secret keys of any kind.
func checkPublic(raw json.RawMessage) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return fmt.Errorf("is not a valid key (%w): write it as the issuer published it", err)
	}
	if _, symmetric := members["k"]; symmetric || string(members["kty"]) == `"oct"` {
		return errors.New("is a symmetric key, and a verifier with it could also sign tokens: " +
			"let the issuer sign with RS256, ES256 or EdDSA")
	}
	for _, name := range privateNames {
		if _, found := members[name]; found {
			return fmt.Errorf("is a private key (it has %q), which only its owner should have: remove %s",
				name, strings.Join(privateNames[:], " "))
		}
	}
	return nil
}

// unused returns the reason why a key is skipped, or "" for a key that is used.
func (j *jwk) unused() string {
	switch {
	case j.Use != "" && j.Use != "sig":
		return fmt.Sprintf("has use %.20q", j.Use)
	case j.Operations != nil && !slices.Contains(j.Operations, "verify"):
		return "has key_ops without verify"
	case j.Type == "RSA":
	case j.Type == "EC" && slices.Contains(curveNames[:], j.Curve):
	case j.Type == "OKP" && j.Curve == "Ed25519":
	default:
		return fmt.Sprintf("has the unsupported kind %.20q %.20q", j.Type, j.Curve)
	}
	if j.Algorithm != "" && !slices.Contains(algorithmNames[:], j.Algorithm) {
		return fmt.Sprintf("is for alg %.20q", j.Algorithm)
	}
	return ""
}

// public decodes the key. go-jose checks lengths, and that a point is on its curve.
func (j *jwk) public() (crypto.PublicKey, error) {
	members, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	var parsed jose.JSONWebKey
	if err := parsed.UnmarshalJSON(members); err != nil {
		return nil, fmt.Errorf("cannot be read (%w): write it as the issuer published it, and an RSA key above %d bits as PEM",
			err, jose.MaxRSAModulusBits)
	}
	return parsed.Key, checkStrength(parsed.Key)
}
