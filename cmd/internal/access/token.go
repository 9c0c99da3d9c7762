package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// tokenPrefix begins each token, so that programs that search for secrets recognize one.
const tokenPrefix = "hg_"

const tokenBytes = 32

// Digest is what a configuration has of a token: the SHA-256 of its text.
type Digest = [sha256.Size]byte

// NewToken makes a token: tokenPrefix and 32 random bytes in base64url.
func NewToken() string {
	var b [tokenBytes]byte
	_, _ = rand.Read(b[:]) // It ends the program when the system has no random numbers.
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// DigestOf gives the digest of a token.
func DigestOf(token string) Digest { return sha256.Sum256([]byte(token)) }
