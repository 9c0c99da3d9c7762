package ctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/admin"
)

// Instance asks one running instance by its admin listener.
type Instance struct {
	// Admin is the instance's admin.listen; it may be written as a URL.
	Admin string
	// JSON prints what came, for programs.
	JSON bool
}

// ConfigError marks errors of usage or configuration, which have an exit status of
// their own.
type ConfigError struct{ error }

// Unwrap gives the error without the mark.
func (e ConfigError) Unwrap() error { return e.error }

// Bounds of an answer of an instance.
const (
	ctlTimeout = 5 * time.Second
	// reloadTimeout has room for all files of a file system that does not answer.
	reloadTimeout = 2 * time.Minute
	maxStatus     = 16 << 20
)

// Status prints the status, as a table or as it came.
func (c *Instance) Status(ctx context.Context, stdout io.Writer) error {
	return show(ctx, c, "/api/v1/status", stdout, writeStatus)
}

// show prints a page of the instance: as it came with --json, else as write does.
func show[T any](ctx context.Context, c *Instance, page string, stdout io.Writer, write func(io.Writer, *T) error) error {
	text, err := c.ask(ctx, http.MethodGet, page)
	if err != nil {
		return err
	}
	if c.JSON {
		_, err := stdout.Write(text)
		return err
	}
	var what T
	if err := c.decode(text, &what); err != nil {
		return err
	}
	return write(stdout, &what)
}

// decode reads what the instance answered.
func (c *Instance) decode(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("ctl: %s does not answer as an admin address of headgate does: name one with --admin: %w", c.Admin, err)
	}
	return nil
}

// ask asks for a page of the instance, or orders something. Instances tell of themselves on addresses of
// this machine, so that no proxy of the environment is asked.
func (c *Instance) ask(ctx context.Context, method, page string) ([]byte, error) {
	a, err := c.exchange(ctx, method, page, ctlTimeout)
	switch {
	case err != nil:
		return nil, err
	case a.code == http.StatusNotFound && method == http.MethodDelete:
		return nil, fmt.Errorf("ctl: %s: %s", strings.TrimPrefix(page, "/api/v1/"), strings.TrimSpace(string(a.text)))
	case a.code == http.StatusBadRequest,
		a.code == http.StatusNotFound && slices.Contains([]string{admin.NoFairShare, admin.KeysOff}, strings.TrimSpace(string(a.text))):
		return nil, fmt.Errorf("ctl: %s: %s", c.Admin, strings.TrimSpace(string(a.text)))
	case a.code != http.StatusOK:
		return nil, fmt.Errorf("ctl: %s answers %s to %s: is it an admin.listen, and of this version?", c.Admin, a.status, page)
	}
	return a.text, nil
}

// reply is what the instance answered.
type reply struct {
	code   int
	status string // the code with its words
	text   []byte
}

// exchange sends a request to the instance and reads the answer, whatever its status.
func (c *Instance) exchange(ctx context.Context, method, page string, patience time.Duration) (reply, error) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	address, err := c.address()
	if err != nil {
		return reply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+address+page, http.NoBody)
	if err != nil {
		return reply{}, fmt.Errorf("ctl: %q is not an address: write host:port with --admin", c.Admin)
	}
	req.Host = "localhost" // Instances answer no name, which a page might have made up.
	resp, err := client.Do(req)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return reply{}, fmt.Errorf("ctl: nothing answers on %s: start headgate proxy, or name its admin.listen with --admin", address)
	case err != nil:
		return reply{}, fmt.Errorf("ctl: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	if err != nil {
		return reply{}, fmt.Errorf("ctl: reading from %s: %w", address, err)
	}
	return reply{resp.StatusCode, resp.Status, text}, nil
}

// address gives host:port of --admin, which may be written as a URL.
func (c *Instance) address() (string, error) {
	address := strings.TrimSuffix(strings.TrimPrefix(c.Admin, "http://"), "/")
	if strings.HasPrefix(address, "https://") {
		return "", fmt.Errorf("ctl: %s: admin.listen speaks plain HTTP: write http://, or host:port alone", c.Admin)
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return "", fmt.Errorf("ctl: %q is not an address: write host:port with --admin, like 127.0.0.1:9902", c.Admin)
	}
	return address, nil
}
