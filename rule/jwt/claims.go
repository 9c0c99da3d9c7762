package jwt

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	gojwt "github.com/golang-jwt/jwt/v5"

	"github.com/headgate/headgate/internal/sorting"
)

// maxClaims limits the claims of a token and so the memory of a cached token. Each claim
// takes 32 bytes and its text. Tokens usually have about a dozen claims.
const maxClaims = 100

var (
	errNoObject = errors.New("jwt: the claims are not an object")
	errTooMany  = errors.New("jwt: the token has too many claims")
	errTwice    = errors.New("jwt: a claim name repeats")
	errKind     = errors.New("jwt: a claim has the wrong type")
)

// claim is one claim in the form that rules look up.
type claim struct{ name, text string }

// claimSet has the claims of a valid token for rules. claimSet is an immutable
// headgate.Values, sorted by name.
type claimSet []claim

// Lookup returns the text of a claim.
func (s *claimSet) Lookup(name string) (value string, ok bool) {
	i, found := slices.BinarySearchFunc(*s, name, func(c claim, name string) int { return strings.Compare(c.name, name) })
	if !found {
		return "", false
	}
	return (*s)[i].text, true
}

// payload has the claims of a token before verification. payload implements the Claims
// interface of the library, which calls its methods for the claims that it checks.
type payload struct {
	claims claimSet
	// expires is the value of exp. The library always calls GetExpirationTime, which sets it.
	expires time.Time
	// These fields are the JSON of the registered claims, nil for missing claims.
	exp, nbf, iat, iss, aud json.RawMessage
}

var _ gojwt.Claims = (*payload)(nil)

// UnmarshalJSON parses the top level of the claims. The library has already checked that
// data is JSON. UnmarshalJSON reads JSON tokens, because a map would hide a duplicate claim.
func (p *payload) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errNoObject
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if len(p.claims) == maxClaims {
			return errTooMany
		}
		text, _ := name.(string) // the token before a value is always a string
		p.add(text, value)
	}
	return p.arrange()
}

// add adds a claim. A claim that rules do not see gets the text "", so that arrange can
// still find a duplicate name.
func (p *payload) add(name string, value json.RawMessage) {
	switch name {
	case "exp":
		p.exp = value
	case "nbf":
		p.nbf = value
	case "iat":
		p.iat = value
	case "iss":
		p.iss = value
	case "aud":
		p.aud = value
	}
	p.claims = append(p.claims, claim{name, textOf(value)})
}

// arrange sorts the claims and removes the claims that rules do not see.
func (p *payload) arrange() error {
	sorting.Func(p.claims, func(a, b claim) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(p.claims); i++ {
		if p.claims[i].name == p.claims[i-1].name {
			return errTwice
		}
	}
	p.claims = slices.DeleteFunc(p.claims, func(c claim) bool { return c.text == "" })
	return nil
}

// textOf returns the text of a value for rules, or "" for a value that rules do not see.
func textOf(value json.RawMessage) string {
	switch c := value[0]; {
	case c == '"':
		var text string
		if err := json.Unmarshal(value, &text); err != nil || strings.ContainsRune(text, utf8.RuneError) {
			return ""
		}
		if hasTypeWord(text) {
			return stringWord + text
		}
		return text
	case isNumber(value):
		return numberWord + string(value)
	case c == 't', c == 'f':
		return booleanWord + string(value)
	}
	return ""
}

// These prefixes mark claims that are not strings, and strings that begin with a prefix.
// Without them, 1 and "1" would count as one client.
const (
	numberWord  = "number:"
	booleanWord = "boolean:"
	stringWord  = "string:"
)

func hasTypeWord(text string) bool {
	return strings.HasPrefix(text, numberWord) || strings.HasPrefix(text, booleanWord) || strings.HasPrefix(text, stringWord)
}

func isNumber(value json.RawMessage) bool {
	return value[0] == '-' || value[0] >= '0' && value[0] <= '9'
}

// GetExpirationTime returns exp and stores it for the cache.
func (p *payload) GetExpirationTime() (*gojwt.NumericDate, error) {
	date, err := dateOf(p.exp)
	if date != nil {
		p.expires = date.Time
	}
	return date, err
}

// GetNotBefore returns nbf.
func (p *payload) GetNotBefore() (*gojwt.NumericDate, error) { return dateOf(p.nbf) }

// GetIssuedAt returns iat.
func (p *payload) GetIssuedAt() (*gojwt.NumericDate, error) { return dateOf(p.iat) }

// GetIssuer returns iss. The library calls it if the Config has an issuer.
func (p *payload) GetIssuer() (string, error) {
	var issuer string
	if p.iss != nil && json.Unmarshal(p.iss, &issuer) != nil {
		return "", errKind
	}
	return issuer, nil
}

// GetSubject returns "". The library calls it only to check a subject, which is not used.
func (p *payload) GetSubject() (string, error) { return "", nil }

// GetAudience returns aud, which is a string or a list of strings. The library calls it
// if the Config has an audience.
func (p *payload) GetAudience() (gojwt.ClaimStrings, error) {
	if p.aud == nil {
		return nil, nil
	}
	var one string
	if json.Unmarshal(p.aud, &one) == nil {
		return gojwt.ClaimStrings{one}, nil
	}
	var several []string
	if json.Unmarshal(p.aud, &several) != nil {
		return nil, errKind
	}
	return several, nil
}

// maxSeconds limits dates to about the year 36,000. Later dates make no difference, and
// time.Time is exact up to this limit.
const maxSeconds = 1 << 40

// dateOf parses a NumericDate (RFC 7519, section 2): seconds since the Unix epoch, with
// or without a fraction. dateOf returns nil for a missing claim.
func dateOf(value json.RawMessage) (*gojwt.NumericDate, error) {
	if value == nil {
		return nil, nil //nolint:nilnil // because the library wants it so
	}
	if !isNumber(value) {
		return nil, errKind
	}
	seconds, err := strconv.ParseFloat(string(value), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // a number out of range becomes infinite
		return nil, errKind
	}
	whole, part := math.Modf(min(max(seconds, -maxSeconds), maxSeconds))
	return &gojwt.NumericDate{Time: time.Unix(int64(whole), int64(part*1e9))}, nil
}
