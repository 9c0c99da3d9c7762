package jwt

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

const (
	// maxToken limits the length of a token, in bytes. Servers limit all headers of a request
	// to a similar size.
	maxToken = 8 << 10
	// defaultCached is the default size of the cache. defaultCached takes about 10 MB with usual tokens,
	// and 100 MB with the longest tokens.
	defaultCached = 10_000
	// refusedCached is the number of refused tokens that a separate cache keeps for
	// refusedFor. The cache takes about 600 KB. Refused tokens therefore evict no valid
	// token.
	refusedCached = 4096
	refusedFor    = 10 * time.Second
	// maxCached prevents a mistyped setting from taking all memory.
	maxCached = 1 << 20
)

// Config says which signed tokens are accepted. The zero Config accepts every issuer and
// audience, and no difference between clocks.
type Config struct {
	// Issuer and Audience, unless "", must match iss and aud of a token. One entry of aud is
	// enough.
	Issuer, Audience string
	// Leeway is the maximum difference between the clocks of the issuer and this machine.
	Leeway time.Duration
	// Clock replaces time.Now in tests. Goroutines call it concurrently.
	Clock func() time.Time
	// MaxCached is the maximum number of valid tokens in the cache. 0 means 10,000, and a
	// negative value means no cache.
	MaxCached int
}

// Verifier verifies tokens with keys that never change. A changed file needs a new
// Verifier. Verifier is safe for concurrent use.
type Verifier struct {
	keys   keySet
	parser *gojwt.Parser
	clock  func() time.Time
	leeway time.Duration
	cache  *cache
	// refused has tokens with an invalid signature or invalid signed claims.
	refused *cache
}

var _ rule.Tokens = (*Verifier)(nil)

// New returns a Verifier for the content of a key file, JWKS or PEM. The error names the
// invalid key or setting and the remedy.
func New(keys []byte, c Config) (*Verifier, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("jwt: %w", err)
	}
	set, err := parseKeys(keys)
	if err != nil {
		return nil, fmt.Errorf("jwt: %w", err)
	}
	return newVerifier(set, c), nil
}

func (c *Config) check() error {
	switch {
	case c.Leeway < 0:
		return fmt.Errorf("leeway %v is negative: use 0 or more, like 30s", c.Leeway)
	case c.MaxCached > maxCached:
		return fmt.Errorf("MaxCached of %d is too large: use at most %d", c.MaxCached, maxCached)
	}
	return nil
}

func newVerifier(keys keySet, c Config) *Verifier {
	if c.MaxCached == 0 {
		c.MaxCached = defaultCached
	}
	clock := clockOr(c.Clock)
	options := []gojwt.ParserOption{
		gojwt.WithValidMethods(algorithmNames[:]),
		gojwt.WithStrictDecoding(),
		gojwt.WithTimeFunc(clock),
		gojwt.WithLeeway(c.Leeway),
		gojwt.WithExpirationRequired(),
		gojwt.WithIssuedAt(),
	}
	if c.Issuer != "" {
		options = append(options, gojwt.WithIssuer(c.Issuer))
	}
	if c.Audience != "" {
		options = append(options, gojwt.WithAudience(c.Audience))
	}
	refused := refusedCached
	if c.MaxCached < 0 {
		refused = 0
	}
	return &Verifier{keys, gojwt.NewParser(options...), clock, c.Leeway, newCache(c.MaxCached), newCache(refused)}
}

// Verify returns the claims of a valid token. The token has no "Bearer" in front.
//
// String claims keep their text. Numbers become "number:" and their JSON, and booleans
// become boolean:true and boolean:false, so that a rule can distinguish 1 from "1". A
// string that begins with number:, boolean: or string: gets string: in front.
//
// All other claims are missing, and null and empty claims too. A string with U+FFFD is
// missing as well: decoders replace invalid text by U+FFFD, so the texts of two senders
// could become equal.
//
// A cached token costs a hash and allocates nothing. A new token costs a signature, or
// up to four signatures if the token has no kid. A token that was refused in the last ten
// seconds costs a hash, unless it was refused because of its exp, nbf or iat.
func (v *Verifier) Verify(token string) (claims headgate.Values, ok bool) {
	if len(token) > maxToken || v.clock == nil { // The clock is nil if New did not make the Verifier.
		return nil, false
	}
	digest, now := digestOf(token), v.clock()
	if claims, ok := v.cache.get(digest, now); ok {
		return claims, true
	}
	if _, refused := v.refused.get(digest, now); refused {
		return nil, false
	}
	claims, expires, err := v.judge(token)
	switch {
	case err == nil:
		v.cache.put(digest, claims, expires, v.clock())
		return claims, true
	case staysRefused(err):
		v.refused.put(digest, nil, v.clock().Add(refusedFor), v.clock())
	}
	return nil, false
}

// staysRefused reports whether a token cost a signature and is invalid at any time.
func staysRefused(err error) bool {
	return errors.Is(err, gojwt.ErrTokenSignatureInvalid) ||
		errors.Is(err, gojwt.ErrTokenInvalidClaims) && !errors.Is(err, gojwt.ErrTokenExpired) &&
			!errors.Is(err, gojwt.ErrTokenNotValidYet) && !errors.Is(err, gojwt.ErrTokenUsedBeforeIssued)
}

// judge parses a token and makes all checks.
func (v *Verifier) judge(token string) (claims headgate.Values, expires time.Time, err error) {
	if !isPlain(token) {
		return nil, time.Time{}, errNoKey
	}
	var said payload
	if _, err := v.parser.ParseWithClaims(token, &said, v.keysFor); err != nil {
		return nil, time.Time{}, err
	}
	kept := slices.Clone(said.claims) // the copy releases the rest of the payload
	return &kept, said.expires.Add(v.leeway), nil
}

// isPlain reports whether a token has only the characters of its encoding. The decoder
// ignores line breaks. One valid token could otherwise have many spellings, and each
// would take a place in the cache.
func isPlain(token string) bool {
	for i := range len(token) {
		c := token[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return strings.Count(token, ".") == 2
}

// errNoKey stays inside the library: Verify reports only false.
var errNoKey = errors.New("jwt: no key matches the token")

// keysFor returns the keys that may have signed a token. The library then tries them. The
// header of the token is not verified at this point.
func (v *Verifier) keysFor(token *gojwt.Token) (any, error) {
	if _, critical := token.Header["crit"]; critical {
		return nil, errNoKey
	}
	id := ""
	if value, named := token.Header["kid"]; named {
		text, isText := value.(string)
		if !isText {
			return nil, errNoKey
		}
		id = text
	}
	var fit gojwt.VerificationKeySet
	for _, k := range v.keys.find(token.Method.Alg(), id) {
		fit.Keys = append(fit.Keys, k.public)
	}
	if len(fit.Keys) == 0 {
		return nil, errNoKey
	}
	return fit, nil
}
