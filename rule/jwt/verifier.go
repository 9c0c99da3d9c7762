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
	// maxToken bounds a token, in bytes: servers bound the whole head of a request so.
	maxToken = 8 << 10
	// defaultCached tokens take about 10 MB as they are usual, and 100 MB at the
	// bounds of a token.
	defaultCached = 10_000
	// refusedCached refused tokens are remembered for refusedFor. They have a cache of their own, of some
	// 600 KB: no number of them drives out a good token.
	refusedCached = 4096
	refusedFor    = 10 * time.Second
	// maxCached keeps a slip of the pen from taking all memory.
	maxCached = 1 << 20
)

// Config says which tokens are good, apart from their signatures. The zero Config
// takes every issuer and audience, and no difference between clocks.
type Config struct {
	// Issuer and Audience, unless "", are what a token must be from (iss) and for
	// (aud; one of several is enough).
	Issuer, Audience string
	// Leeway is how far the issuer's clock and ours may differ.
	Leeway time.Duration
	// Clock replaces time.Now, in tests. It is called concurrently.
	Clock func() time.Time
	// MaxCached bounds how many good tokens are remembered: 0 is 10,000, negative is
	// none.
	MaxCached int
}

// Verifier verifies tokens by keys that never change: a changed file takes a new
// one. It is safe for concurrent use.
type Verifier struct {
	keys   keySet
	parser *gojwt.Parser
	clock  func() time.Time
	leeway time.Duration
	cache  *cache
	// refused has tokens whose signature, or whose claims behind it, did not hold.
	refused *cache
}

var _ rule.Tokens = (*Verifier)(nil)

// New makes a Verifier of the content of a file of keys, JWKS or PEM. The error
// says which key or setting is wrong, and what to write instead.
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
		return fmt.Errorf("MaxCached of %d is too much: use at most %d", c.MaxCached, maxCached)
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

// Verify gives the claims of a good token, which stand alone: without "Bearer"
// before it. Strings are as they are; numbers are "number:" and their JSON, booleans boolean:true and
// boolean:false, so that a rule tells 1 from "1"; a string that begins with one of
// these words, or with "string:", has "string:" before it. Other claims, and those that are null or empty, are not there.
// A string with U+FFFD is not there either: decoders put it in place of what is no
// text, and two senders' different texts may become one.
//
// What was good before costs a hash of the token and allocates nothing; the first
// time costs a signature, or up to four where the token names no key. What was refused within the
// last ten seconds costs a hash too, unless only its time had not come.
func (v *Verifier) Verify(token string) (claims headgate.Values, ok bool) {
	if len(token) > maxToken || v.clock == nil { // Without a clock New did not make the Verifier.
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

// staysRefused reports whether a token cost a signature, and is refused again whatever the time is.
func staysRefused(err error) bool {
	return errors.Is(err, gojwt.ErrTokenSignatureInvalid) ||
		errors.Is(err, gojwt.ErrTokenInvalidClaims) && !errors.Is(err, gojwt.ErrTokenExpired) &&
			!errors.Is(err, gojwt.ErrTokenNotValidYet) && !errors.Is(err, gojwt.ErrTokenUsedBeforeIssued)
}

// judge reads a token and checks all of it.
func (v *Verifier) judge(token string) (claims headgate.Values, expires time.Time, err error) {
	if !isPlain(token) {
		return nil, time.Time{}, errNoKey
	}
	var said payload
	if _, err := v.parser.ParseWithClaims(token, &said, v.keysFor); err != nil {
		return nil, time.Time{}, err
	}
	kept := slices.Clone(said.claims) // and what was read with them goes
	return &kept, said.expires.Add(v.leeway), nil
}

// isPlain reports that a token has only the characters of its encoding. The
// decoder skips line breaks, so that one good token would have any number of
// spellings, and each would take a place in the cache.
func isPlain(token string) bool {
	for i := range len(token) {
		c := token[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return strings.Count(token, ".") == 2
}

// errNoKey is for the library alone: nobody sees it.
var errNoKey = errors.New("jwt: no key fits the token")

// keysFor gives the keys that may have signed a token, for the library to try. Its
// header is the sender's word still.
func (v *Verifier) keysFor(token *gojwt.Token) (any, error) {
	if _, asks := token.Header["crit"]; asks {
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
