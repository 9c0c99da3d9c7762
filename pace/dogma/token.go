package dogma

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/readfile"
)

const (
	maxToken = 4096
	// anonymous is what Central Dogma's own clients send without a token.
	anonymous = "anonymous"
)

// tokens gives the token of the next request. It is a function so that nothing that
// prints a source prints its token.
func (c Config) tokens() (func() (string, error), error) {
	if c.TokenFile != "" {
		path := c.TokenFile
		reading := new(readfile.Pending[[]byte])
		read := func() (string, error) { return readToken(reading, path) }
		_, err := read()
		return read, err
	}
	token := c.Token
	if token == "" {
		token = anonymous
	}
	return func() (string, error) { return token, nil }, checkToken(token)
}

func readToken(reading *readfile.Pending[[]byte], path string) (string, error) {
	data, err := reading.Do(path, func() ([]byte, error) { return readfile.HeadNow(path, maxToken+1) })
	if err != nil {
		return "", fmt.Errorf("dogma: the token cannot be read: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if err := checkToken(token); err != nil {
		return "", fmt.Errorf("%w, in %s", err, path)
	}
	return token, nil
}

// checkToken says what is wrong with a token without saying the token. What it lets pass
// looks the same wherever it is quoted, so that it is found in what must not show it.
func checkToken(token string) error {
	if token == "" || len(token) > maxToken {
		return fmt.Errorf("dogma: a token of %d bytes: it has from 1 to %d", len(token), maxToken)
	}
	if rest := strings.TrimLeft(token, tokenLetters); rest != "" {
		return fmt.Errorf("dogma: byte %d of the token is no letter, digit or one of -._~+/=: put the token there alone",
			len(token)-len(rest))
	}
	return nil
}

// tokenLetters are those of a bearer token, by RFC 6750.
const tokenLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/="

// hide leaves the token out of a text from outside.
func hide(token, text string) string {
	if token == anonymous {
		return text
	}
	return strings.ReplaceAll(text, token, "[token]")
}
