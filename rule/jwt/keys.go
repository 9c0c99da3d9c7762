package jwt

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/headgate/headgate/internal/readfile"
	"github.com/headgate/headgate/internal/sorting"
)

const (
	// maxKeyFile limits the size of a key file. A key takes a few kilobytes, including its
	// certificates.
	maxKeyFile = 1 << 20
	// maxKeys limits the memory of the keys. Issuers have up to ten keys.
	maxKeys = 32
	// maxTried limits the signatures that one token costs. A signature takes 20 us with RSA
	// and 2 to 3 ms with P-521. An issuer that replaces a key has two or three keys for a
	// while.
	maxTried = 4
	// RSA keys below 2048 bits are too weak (RFC 7518, section 3.3, forbids them). Keys
	// above 8192 bits are not in use and make each signature slow.
	minRSABits = 2048
	maxRSABits = 8192
)

// The accepted algorithms (RFC 7518, section 3.1; RFC 8037): all algorithms for RSA keys,
// and one for each curve.
var (
	algorithmNames = [...]string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
	rsaNames       = algorithmNames[:6]
)

// key is one public key of a file.
type key struct {
	public crypto.PublicKey // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
	// id is the kid of the key, or "". algorithm is the only algorithm that the key may be
	// used with, or "" for all algorithms of its kind.
	id, algorithm string
}

// keySet has the keys for each algorithm. A key is never tried with an algorithm of
// another kind.
type keySet map[string][]key

// find returns at most maxTried keys that may have signed a token. For a kid these are the
// keys with the kid, or the keys without a kid if the file does not have the kid. For a
// token without a kid these are all keys, with the keys without a kid first.
func (s keySet) find(algorithm, id string) []key {
	keys := s.candidates(algorithm, id)
	return keys[:min(len(keys), maxTried)]
}

func (s keySet) candidates(algorithm, id string) []key {
	keys := s[algorithm]
	if id == "" {
		return keys
	}
	if named := withID(keys, id); len(named) > 0 || s.has(id) {
		return named
	}
	return withID(keys, "")
}

func withID(keys []key, id string) []key {
	return slices.DeleteFunc(slices.Clone(keys), func(k key) bool { return k.id != id })
}

// has reports whether a key has the kid, for any algorithm.
func (s keySet) has(id string) bool {
	for _, keys := range s {
		if slices.ContainsFunc(keys, func(k key) bool { return k.id == id }) {
			return true
		}
	}
	return false
}

// checkNames refuses more than maxTried keys with the same algorithm and kid, because
// some of them would never be tried.
func (s keySet) checkNames() error {
	for algorithm, keys := range s {
		for _, k := range keys {
			if n := len(withID(keys, k.id)); n > maxTried {
				return fmt.Errorf("the file has %d keys for %s with the same kid %.20q, and Verify tries at most %d for a token: "+
					"remove unused keys, or write a JWKS with a kid for each", n, algorithm, k.id, maxTried)
			}
		}
	}
	return nil
}

// newKeySet groups valid keys by algorithm, with the keys without a kid first.
func newKeySet(keys []key) keySet {
	set := keySet{}
	sorting.StableFunc(keys, func(a, b key) int { return cmp.Compare(min(len(a.id), 1), min(len(b.id), 1)) })
	for _, k := range keys {
		for _, name := range algorithmsOf(k.public) {
			if k.algorithm == "" || k.algorithm == name {
				set[name] = append(set[name], k)
			}
		}
	}
	return set
}

// algorithmsOf returns the algorithms for a kind of key, or nil for a kind that is not
// supported.
func algorithmsOf(public crypto.PublicKey) []string {
	switch public := public.(type) {
	case *rsa.PublicKey:
		return rsaNames
	case ed25519.PublicKey:
		return []string{"EdDSA"}
	case *ecdsa.PublicKey:
		switch public.Curve {
		case elliptic.P256():
			return []string{"ES256"}
		case elliptic.P384():
			return []string{"ES384"}
		case elliptic.P521():
			return []string{"ES512"}
		}
	}
	return nil
}

// checkStrength refuses keys with signatures that an attacker can forge.
func checkStrength(public crypto.PublicKey) error {
	k, isRSA := public.(*rsa.PublicKey)
	if !isRSA {
		return nil
	}
	switch bits := k.N.BitLen(); {
	case bits < minRSABits, bits > maxRSABits:
		return fmt.Errorf("is an RSA key of %d bits: use one of %d to %d bits", bits, minRSABits, maxRSABits)
	case k.N.Bit(0) == 0, k.E < 3, k.E%2 == 0, k.E > math.MaxInt32: // crypto/rsa refuses such keys when it verifies a signature
		return errors.New("is not a valid RSA key (its numbers are even, too small or too large): use the issuer's key as published")
	}
	return nil
}

// Open returns a Verifier for a file of keys, like New.
func Open(file string, c Config) (*Verifier, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("jwt: %w", err)
	}
	data, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("jwt: %w", err)
	}
	set, err := parseKeys(data)
	if err != nil {
		return nil, fmt.Errorf("jwt: %s: %w", file, err)
	}
	return newVerifier(set, c), nil
}

// read reads a regular file, up to maxKeyFile plus one byte.
func read(file string) ([]byte, error) {
	data, err := readfile.Head(file, maxKeyFile+1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: put the issuer's public keys there, or correct the path", err)
	case errors.Is(err, readfile.ErrNotRegular):
		return nil, fmt.Errorf("%w: write the path of the key file", err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: make the file readable for this process", err)
	}
	return data, err
}

// parseKeys parses JWKS or PEM. The caller puts the file's name in front of its errors.
func parseKeys(data []byte) (keySet, error) {
	if len(data) > maxKeyFile {
		return nil, fmt.Errorf("the file is longer than %d bytes: keep only the issuer's public keys", maxKeyFile)
	}
	parse := parsePEM
	switch trimmed := bytes.TrimSpace(data); {
	case len(trimmed) == 0:
		return nil, errors.New("the file is empty: write the issuer's public keys there, as JWKS or PEM")
	case trimmed[0] == '{', trimmed[0] == '[':
		parse = parseJWKS
	case !bytes.Contains(data, []byte(pemBegin)):
		return nil, errors.New(`the file is neither JWKS nor PEM: write {"keys": [...]}, ` +
			`or a public key that begins with "-----BEGIN PUBLIC KEY-----"`)
	}
	keys, err := parse(data)
	if err != nil {
		return nil, err
	}
	if len(keys) > maxKeys {
		return nil, fmt.Errorf("the file has %d keys, and the maximum is %d: remove unused keys", len(keys), maxKeys)
	}
	set := newKeySet(keys)
	return set, set.checkNames()
}
