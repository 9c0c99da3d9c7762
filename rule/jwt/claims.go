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
)

// maxClaims bounds the claims of a token, and so the memory of a cached one: each
// takes 32 bytes and its text. Tokens have a dozen.
const maxClaims = 100

var (
	errNoObject = errors.New("jwt: the claims are no object")
	errTooMany  = errors.New("jwt: the token has too many claims")
	errTwice    = errors.New("jwt: a claim is there twice")
	errKind     = errors.New("jwt: a claim is of the wrong kind")
)

// claim is one claim as rules look it up.
type claim struct{ name, text string }

// claimSet is what rules see of a good token: a headgate.Values, sorted by name,
// that never changes.
type claimSet []claim

// Lookup gives a claim's text.
func (s *claimSet) Lookup(name string) (value string, ok bool) {
	i, found := slices.BinarySearchFunc(*s, name, func(c claim, name string) int { return strings.Compare(c.name, name) })
	if !found {
		return "", false
	}
	return (*s)[i].text, true
}

// payload is what a token says, true or not. It is the Claims of the library,
// which asks it for what it checks.
type payload struct {
	claims claimSet
	// expires is exp once the library has asked for it: it always does.
	expires time.Time
	// What follows is the JSON of the registered claims, nil for those not there.
	exp, nbf, iat, iss, aud json.RawMessage
}

var _ gojwt.Claims = (*payload)(nil)

// UnmarshalJSON reads the top level of the claims. The library has seen that data
// is JSON; decoding it to a map would hide a claim that is there twice.
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
		text, _ := name.(string) // what stands before a value is a string
		p.add(text, value)
	}
	return p.arrange()
}

// add notes a claim. One that rules do not see is kept as "" until arrange has
// seen its name.
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

// arrange sorts the claims, and leaves out those that rules do not see.
func (p *payload) arrange() error {
	slices.SortFunc(p.claims, func(a, b claim) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(p.claims); i++ {
		if p.claims[i].name == p.claims[i-1].name {
			return errTwice
		}
	}
	p.claims = slices.DeleteFunc(p.claims, func(c claim) bool { return c.text == "" })
	return nil
}

// textOf gives a value as rules see it, "" for what they do not.
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

// The words before a claim that is not a string, and before a string that begins with one of them: without
// them 1 and "1" would count as one client.
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

// GetExpirationTime gives exp, and keeps it for the cache.
func (p *payload) GetExpirationTime() (*gojwt.NumericDate, error) {
	date, err := dateOf(p.exp)
	if date != nil {
		p.expires = date.Time
	}
	return date, err
}

// GetNotBefore gives nbf.
func (p *payload) GetNotBefore() (*gojwt.NumericDate, error) { return dateOf(p.nbf) }

// GetIssuedAt gives iat.
func (p *payload) GetIssuedAt() (*gojwt.NumericDate, error) { return dateOf(p.iat) }

// GetIssuer gives iss. The library asks when a Config has an issuer.
func (p *payload) GetIssuer() (string, error) {
	var issuer string
	if p.iss != nil && json.Unmarshal(p.iss, &issuer) != nil {
		return "", errKind
	}
	return issuer, nil
}

// GetSubject gives "": the library asks only when it is told a subject to expect.
func (p *payload) GetSubject() (string, error) { return "", nil }

// GetAudience gives aud, which is one string or a list of them. The library asks
// when a Config has an audience.
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

// maxSeconds bounds dates, near the year 36,000: there is nothing to tell apart
// beyond, and time.Time computes exactly up to there.
const maxSeconds = 1 << 40

// dateOf reads a NumericDate (RFC 7519, section 2): seconds from the Unix epoch,
// with a fraction or not. It is nil for a claim that is not there.
func dateOf(value json.RawMessage) (*gojwt.NumericDate, error) {
	if value == nil {
		return nil, nil //nolint:nilnil // because the library wants it so
	}
	if !isNumber(value) {
		return nil, errKind
	}
	seconds, err := strconv.ParseFloat(string(value), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range is infinite
		return nil, errKind
	}
	whole, part := math.Modf(min(max(seconds, -maxSeconds), maxSeconds))
	return &gojwt.NumericDate{Time: time.Unix(int64(whole), int64(part*1e9))}, nil
}
