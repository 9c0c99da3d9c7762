package ctl

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/headgate/headgate/cmd/internal/certs"
)

// The schemes of --admin.
const (
	plainScheme = "http://"
	tlsScheme   = "https://"
)

// endpoint is where an Instance sends its requests.
type endpoint struct {
	scheme, address string
	tls             *tls.Config // nil for http
}

// endpoint reads --admin and --ca.
func (c *Instance) endpoint() (endpoint, error) {
	at := endpoint{scheme: plainScheme, address: strings.TrimSuffix(strings.TrimPrefix(c.Admin, plainScheme), "/")}
	if rest, found := strings.CutPrefix(at.address, tlsScheme); found {
		at.scheme, at.address = tlsScheme, rest
	}
	if _, _, err := net.SplitHostPort(at.address); err != nil {
		return at, fmt.Errorf("ctl: %q is not an address: write host:port with --admin, like 127.0.0.1:9902", c.Admin)
	}
	switch {
	case at.scheme == tlsScheme:
		authorities, err := certs.NewClient(certs.ClientConfig{CA: c.CA, ServerName: c.serverName})
		if err != nil {
			return at, ConfigError{fmt.Errorf("ctl: --ca: %w", err)}
		}
		at.tls = authorities.Config()
	case c.CA != "":
		return at, ConfigError{fmt.Errorf("ctl: --ca has no effect on %s, which is reached without TLS: write https:// before the "+
			"address, or leave --ca out", c.Admin)}
	}
	return at, nil
}

// unanswered gives the error of a request without an answer, with the advice for a listener that is no admin.listen, or has another
// scheme or authority. A server of gRPC speaks first: net/http then has one of two errors, and one of them is no text.
func (c *Instance) unanswered(at endpoint, err error) error {
	text := err.Error()
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("ctl: nothing answers on %s: start headgate proxy, or name its admin.listen with --admin", at.address)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("ctl: %s speaks plain HTTP: write http:// before the address, or set admin.tls in its configuration", at.address)
	case c.answered:
	case at.tls != nil:
		return untrusted(at, err)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("ctl: %w: does it speak TLS? write https:// for an admin.listen with admin.tls, or name the admin.listen with "+
			"--admin", err)
	case strings.Contains(text, "malformed HTTP"), strings.Contains(text, "readLoopPeekFailLocked: %!w(<nil>)"):
		return fmt.Errorf("ctl: %s does not speak HTTP: name the admin.listen with --admin", at.address)
	}
	return fmt.Errorf("ctl: %w", err)
}

// untrusted gives the error of a handshake, with the advice for the cause.
func untrusted(at endpoint, err error) error {
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return fmt.Errorf("ctl: %s: the certificate has an unknown authority: name the PEM file of its authority with --ca", at.address)
	}
	if name, other := errors.AsType[x509.HostnameError](err); other {
		return fmt.Errorf("ctl: %s: %w: use a name of the certificate with --admin", at.address, name)
	}
	if invalid, found := errors.AsType[x509.CertificateInvalidError](err); found {
		return fmt.Errorf("ctl: %s: %w: renew the files of admin.tls, and check the clock of this machine", at.address, invalid)
	}
	return fmt.Errorf("ctl: %w", err)
}
