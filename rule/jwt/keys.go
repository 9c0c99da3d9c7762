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

	"github.com/headgate/headgate/readfile"
)

const (
	// maxKeyFile bounds a file of keys: one key takes a few kilobytes, its
	// certificates included.
	maxKeyFile = 1 << 20
	// maxKeys bounds the memory of a file. Issuers have up to ten.
	maxKeys = 32
	// maxTried bounds how many signatures one token costs: 20 us each with RSA, 2 to 3 ms with P-521.
	// An issuer that replaces a key has two for a while, or three.
	maxTried = 4
	// RSA keys below 2048 bits can be broken (RFC 7518, section 3.3, forbids them);
	// those above 8192 make each signature dear, and nobody has them.
	minRSABits = 2048
	maxRSABits = 8192
)

// The algorithms that are accepted (RFC 7518, section 3.1; RFC 8037): those of RSA
// keys, and one of each curve.
var (
	algorithmNames = [...]string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
	rsaNames       = algorithmNames[:6]
)

// key is one public key of a file.
type key struct {
	public crypto.PublicKey // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
	// id is its name (kid) and algorithm the only one it may be used with; "" is none.
	id, algorithm string
}

// keySet holds the keys by the algorithms that each may be used with: a key is
// never tried with another.
type keySet map[string][]key

// find gives the keys that may have signed a token, maxTried at most: those of the name; those
// without a name when there are none, or when the token names none, all, those without a name first.
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

// has reports that some key has the name, whatever its algorithms.
func (s keySet) has(id string) bool {
	for _, keys := range s {
		if slices.ContainsFunc(keys, func(k key) bool { return k.id == id }) {
			return true
		}
	}
	return false
}

// checkNames refuses keys that no token could tell apart, and of which some would never be tried.
func (s keySet) checkNames() error {
	for algorithm, keys := range s {
		for _, k := range keys {
			if n := len(withID(keys, k.id)); n > maxTried {
				return fmt.Errorf("the file has %d keys for %s with the same kid %.20q or none, and %d are tried for a token: "+
					"leave out those that are no longer used, or write a JWKS with a kid for each", n, algorithm, k.id, maxTried)
			}
		}
	}
	return nil
}

// newKeySet sorts keys by their algorithms, those without a name first. They are fit, each for its own.
func newKeySet(keys []key) keySet {
	set := keySet{}
	slices.SortStableFunc(keys, func(a, b key) int { return cmp.Compare(min(len(a.id), 1), min(len(b.id), 1)) })
	for _, k := range keys {
		for _, name := range algorithmsOf(k.public) {
			if k.algorithm == "" || k.algorithm == name {
				set[name] = append(set[name], k)
			}
		}
	}
	return set
}

// algorithmsOf gives the algorithms that a key is made for; none for a kind of key
// that is not used.
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

// checkStrength refuses keys that anyone could sign for.
func checkStrength(public crypto.PublicKey) error {
	k, isRSA := public.(*rsa.PublicKey)
	if !isRSA {
		return nil
	}
	switch bits := k.N.BitLen(); {
	case bits < minRSABits, bits > maxRSABits:
		return fmt.Errorf("is an RSA key of %d bits: use one of %d to %d bits", bits, minRSABits, maxRSABits)
	case k.N.Bit(0) == 0, k.E < 3, k.E%2 == 0, k.E > math.MaxInt32: // crypto/rsa verifies with none of these
		return errors.New("is no RSA key (its numbers are even, too small or too large): use the issuer's key as it was published")
	}
	return nil
}

// Open makes a Verifier of a file of keys, as New does.
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

// read reads a regular file, up to maxKeyFile and a byte.
func read(file string) ([]byte, error) {
	data, err := readfile.Head(file, maxKeyFile+1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: put the issuer's public keys there, or name where they are", err)
	case errors.Is(err, readfile.ErrNotRegular):
		return nil, fmt.Errorf("%w: name the file of keys itself", err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: let the process read it", err)
	}
	return data, err
}

// parseKeys reads JWKS or PEM. Its errors go on from the file's name.
func parseKeys(data []byte) (keySet, error) {
	if len(data) > maxKeyFile {
		return nil, fmt.Errorf("the file is longer than %d bytes: leave in the issuer's public keys only", maxKeyFile)
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
		return nil, fmt.Errorf("the file has %d keys, and %d fit: leave out those that are no longer used", len(keys), maxKeys)
	}
	set := newKeySet(keys)
	return set, set.checkNames()
}
