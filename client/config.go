package client

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/headgate/headgate/guard"
)

// Defaults of a Config.
const (
	DefaultTimeout  = 50 * time.Millisecond
	DefaultMaxQueue = 10_000
)

// Config describes a Client.
type Config struct {
	// Servers are the addresses of the gRPC listeners of headgate server, as host:port. They share a
	// store. The client asks one of them, and another one when that does not answer.
	Servers []string
	// TLS encrypts the connections; nil does not. Without a ServerName, the host of each address is
	// the name in its certificate.
	TLS *tls.Config
	// Token is the token of a caller, as headgate token prints it, for servers with auth. TokenFile has it in a file,
	// which is read each time that a stream is opened, so that tokens can rotate. Without TLS, the network sees
	// the token.
	Token, TokenFile string
	// Timeout bounds the wait for an answer. A caller's deadline that comes first bounds it too. 0 is
	// DefaultTimeout. The delay of a request that must wait comes on top.
	Timeout time.Duration
	// Fallback decides when no server answers in time, or the client is above the limit that the server gives
	// to callers: FallbackDeny, FallbackAllow, FallbackLocal, which
	// asks Local, or FallbackError, which gives ErrUnavailable.
	Fallback guard.Fallback
	// Local decides with FallbackLocal. It counts in the memory of this program, so its limits are
	// this program's part of the limits: see guard.LocalPolicy.
	Local *guard.Guard
	// MaxQueue bounds the calls that wait to be sent; the fallback decides further ones. 0 is
	// DefaultMaxQueue.
	MaxQueue int
	// Log gets a line when no server answers, and one when a server answers again; nil logs nothing.
	Log *slog.Logger
}

// check fills in the defaults.
func (c *Config) check() error {
	switch {
	case len(c.Servers) == 0:
		return errors.New("client: Servers is empty: name the gRPC listener of headgate server, like 127.0.0.1:8081")
	case c.Token != "" && c.TokenFile != "":
		return errors.New("client: Token and TokenFile are both set: leave one of them out")
	case strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("client: Token has a character that no token has: use the text that headgate token prints")
	case c.Timeout < 0:
		return errors.New("client: Timeout is negative: use a positive one, or 0 for the default")
	case c.MaxQueue < 0:
		return errors.New("client: MaxQueue is negative: use a positive one, or 0 for the default")
	case c.Fallback > guard.FallbackError:
		return errors.New("client: Fallback is not known: use the constants of package guard")
	case c.Fallback == guard.FallbackLocal && c.Local == nil:
		return errors.New("client: FallbackLocal needs Local: give it a guard, or use another fallback")
	case c.Fallback != guard.FallbackLocal && c.Local != nil:
		return errors.New("client: Local has no effect without FallbackLocal: set it, or leave Local out")
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxQueue == 0 {
		c.MaxQueue = DefaultMaxQueue
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}
