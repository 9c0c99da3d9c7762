package dogma

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/readfile"
)

const (
	maxToken = 4096
	// anonymous is the token that Central Dogma's clients send when they have none.
	anonymous = "anonymous"
)

// tokens returns a function that returns the token of the next request. A function keeps
// the token out of a printed Source.
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
		return "", fmt.Errorf("dogma: reading the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if err := checkToken(token); err != nil {
		return "", fmt.Errorf("%w (token file %s)", err, path)
	}
	return token, nil
}

// checkToken returns errors that do not contain the token. A valid token has no character
// that quoting would change, so that hide finds it in quoted text.
func checkToken(token string) error {
	if token == "" || len(token) > maxToken {
		return fmt.Errorf("dogma: the token has %d bytes: use a token of 1 to %d bytes", len(token), maxToken)
	}
	if rest := strings.TrimLeft(token, tokenLetters); rest != "" {
		return fmt.Errorf("dogma: byte %d of the token is not a letter, a digit or one of -._~+/=: give the token without other text",
			len(token)-len(rest))
	}
	return nil
}

// tokenLetters are the characters of a bearer token (RFC 6750, section 2.1).
const tokenLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/="

// hide removes the token from a text of the server or the transport.
func hide(token, text string) string {
	if token == anonymous {
		return text
	}
	return strings.ReplaceAll(text, token, "[token]")
}
