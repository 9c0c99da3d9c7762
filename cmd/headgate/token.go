package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/internal/config"
)

// tokenCommand makes a token for a caller of headgate server.
type tokenCommand struct {
	Name  string   `arg:"" help:"Name of the caller: up to 64 letters, digits and the signs - _ and ."`
	Scope []string `help:"What the caller may do: decide, send_limits, read, administer, lease." default:"decide" placeholder:"SCOPE"`
	Until string   `help:"When the caller ends: a date, which includes that day in UTC, or a time. Default: never." placeholder:"DATE"`
}

// Validate checks the flags.
func (t *tokenCommand) Validate() error {
	if !config.ValidCaller(t.Name) {
		return errors.New("the name of the caller is not valid: use 1 to 64 letters, digits and the signs - _ and . in it")
	}
	for i, word := range t.Scope {
		if _, known := config.ParseScope(word); !known {
			return fmt.Errorf("--scope %q is not known: use decide, send_limits, read, administer or lease", word)
		}
		if slices.Contains(t.Scope[:i], word) {
			return fmt.Errorf("--scope %s appears twice: remove one of them", word)
		}
	}
	if t.Until == "" {
		return nil
	}
	end, err := config.ParseUntil(t.Until)
	if err == nil && !end.After(time.Now()) {
		return fmt.Errorf("--until %s is over, so every listener would refuse the token: use a later date", t.Until)
	}
	return err
}

// yamlName writes the name of a caller as YAML reads it: in quotes if it would be null or the sign of a list.
func yamlName(name string) string {
	if strings.EqualFold(name, "null") || strings.Trim(name, "-_.") == "" {
		return strconv.Quote(name)
	}
	return name
}

// Run prints a new token to standard output, and the lines for the configuration to standard error, so that the token
// can be written to a file or a secret.
func (t *tokenCommand) Run(stdout io.Writer, stderr errorWriter) error {
	token := access.NewToken()
	digest := access.DigestOf(token)
	until := ""
	if t.Until != "" {
		until = ", until: " + t.Until
	}
	if _, err := fmt.Fprintln(stdout, token); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stderr, `This is the only time that the token is shown: give it to the caller, who keeps it secret.
Add these lines to the configuration of headgate server, which keeps only the digest:

server:
  callers:
    - {name: %s, tokens: ["sha256:%s"], scopes: [%s]%s}

Each listener that shall ask for tokens needs auth: token, like http: {address: "127.0.0.1:8080", auth: token}.
To rotate, add the digest to the tokens of the caller, and remove the old one when no client uses it.
`, yamlName(t.Name), hex.EncodeToString(digest[:]), strings.Join(t.Scope, ", "), until)
	return err
}
