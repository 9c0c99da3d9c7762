package ctl

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/readfile"
)

// Instance is a client of one running instance's admin listener.
type Instance struct {
	// Admin is the instance's admin.listen, as host:port or as a URL of http or https.
	Admin string
	// CA is a PEM file of authorities for its certificate; "" means those of the system.
	CA string
	// JSON prints the instance's answers unchanged.
	JSON bool
	// Terminal says that the output is a terminal, which would interpret texts.
	Terminal bool
	// TokenFile has the token of a caller; "" means none.
	TokenFile string

	// answered says that the address has answered before, so it is the right listener.
	answered bool
	// name is that of the instance, which its last answer has; "" is unknown.
	name string
	// serverName is the name that its certificate must have; "" means the host of Admin.
	serverName string
}

// ConfigError marks an error of usage or configuration, which has its own exit status.
type ConfigError struct{ error }

// NewConfigError marks an error of usage.
func NewConfigError(err error) error { return ConfigError{err} }

// Unwrap returns the error without the mark.
func (e ConfigError) Unwrap() error { return e.error }

// Bounds of an instance's answer.
const (
	ctlTimeout = 5 * time.Second
	// reloadTimeout is long enough for an instance whose file system does not respond.
	reloadTimeout = 2 * time.Minute
	// callTimeout is longer than an instance waits for its counting store or its source.
	callTimeout = 20 * time.Second
	maxStatus   = 16 << 20
	maxToken    = 4096
)

const statusPage = "/api/v1/status"

// Status prints the status, as a table or as JSON.
func (c *Instance) Status(ctx context.Context, stdout io.Writer) error {
	return show(ctx, c, statusPage, stdout, writeStatus)
}

// show requests a page of the instance. It prints JSON unchanged, or calls write for a table.
func show[T any](ctx context.Context, c *Instance, page string, stdout io.Writer, write func(io.Writer, *T) error) error {
	text, err := c.query(ctx, http.MethodGet, page)
	if err != nil {
		return err
	}
	if c.JSON {
		_, err := stdout.Write(text)
		return err
	}
	var value T
	if err := c.decode(text, &value); err != nil {
		return err
	}
	return write(stdout, &value)
}

// decode parses the instance's answer.
func (c *Instance) decode(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("ctl: %s is not an admin listener of headgate: name the listener with --admin: %w", c.Admin, err)
	}
	return nil
}

// query sends a request and returns the body of a 200. Other statuses become errors.
func (c *Instance) query(ctx context.Context, method, page string) ([]byte, error) {
	a, err := c.exchange(ctx, method, page, "", ctlTimeout)
	switch {
	case err != nil:
		return nil, err
	case a.turnedAway():
		return nil, c.refused(a)
	case a.code == http.StatusNotFound && method == http.MethodDelete:
		return nil, fmt.Errorf("ctl: %s: %s", strings.TrimPrefix(page, "/api/v1/"), strings.TrimSpace(string(a.text)))
	case a.code == http.StatusBadRequest,
		a.code == http.StatusNotFound && slices.Contains(missing(), strings.TrimSpace(string(a.text))),
		a.code == http.StatusNotFound && strings.HasPrefix(string(a.text), admin.UnknownName):
		return nil, fmt.Errorf("ctl: %s: %s", c.Admin, strings.TrimSpace(string(a.text)))
	case a.code != http.StatusOK:
		return nil, fmt.Errorf("ctl: %s answers %s to %s: check that it is an admin.listen of the same version", c.Admin, a.status, page)
	}
	return a.text, nil
}

// missing lists the answers with status 404 that say what is off or not there, in place of an unknown page.
func missing() []string {
	return []string{admin.NoFairShare, admin.KeysOff, admin.NoLeases, admin.NoClaim}
}

// refused gives the error of a client that is turned away.
func (c *Instance) refused(a reply) error {
	err := fmt.Errorf("ctl: %s: %s", c.Admin, strings.TrimSpace(string(a.text)))
	switch a.code {
	case http.StatusUnauthorized:
		return fmt.Errorf("%w: name the file of a token with --token-file", err)
	case http.StatusTooManyRequests:
		return fmt.Errorf("%w, or raise the limit and send SIGHUP to the instance", err)
	default:
		return err
	}
}

// reply is the instance's answer.
type reply struct {
	code   int
	status string // The code with its text.
	text   []byte
}

// turnedAway reports whether the client may not use the instance, or not so often.
func (a reply) turnedAway() bool {
	return a.code == http.StatusUnauthorized || a.code == http.StatusForbidden || a.code == http.StatusTooManyRequests
}

// exchange sends a request and reads the answer, whatever its status. It uses no proxy of the
// environment, because admin listeners usually listen on this machine.
func (c *Instance) exchange(ctx context.Context, method, page, body string, patience time.Duration) (reply, error) {
	at, err := c.endpoint()
	if err != nil {
		return reply{}, err
	}
	transport := &http.Transport{TLSClientConfig: at.tls}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	req, err := http.NewRequestWithContext(ctx, method, at.scheme+at.address+page, strings.NewReader(body))
	if err != nil {
		return reply{}, fmt.Errorf("ctl: %q is not an address: write host:port with --admin", c.Admin)
	}
	if c.TokenFile != "" {
		token, err := readfile.Line(c.TokenFile, maxToken, "token")
		if err != nil {
			return reply{}, ConfigError{fmt.Errorf("ctl: --token-file: %w", err)}
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Host = "localhost" // The admin listener refuses unknown host names, to prevent DNS rebinding.
	resp, err := client.Do(req)
	if err != nil {
		return reply{}, c.unanswered(at, err)
	}
	defer func() { _ = resp.Body.Close() }()
	c.answered, c.name = true, nameIn(resp.Header)
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus+1))
	if err != nil {
		return reply{}, fmt.Errorf("ctl: reading from %s: %w", at.address, err)
	}
	if resp.StatusCode == http.StatusBadRequest && strings.HasPrefix(string(text), "Client sent an HTTP request to an HTTPS server") {
		return reply{}, fmt.Errorf("ctl: %s speaks TLS: write https:// before the address if it is an admin.listen with admin.tls, or "+
			"name the admin.listen with --admin", at.address)
	}
	if len(text) > maxStatus {
		return reply{}, fmt.Errorf("ctl: the answer of %s has more than %d MiB: ask for fewer entries",
			at.address, maxStatus>>20)
	}
	return reply{resp.StatusCode, resp.Status, text}, nil
}
