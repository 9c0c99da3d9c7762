package client

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"

	"github.com/headgate/headgate/internal/lease/holder"
)

// OnLoss says what a program may use of a resource after a lease has ended without renewal.
type OnLoss = holder.OnLoss

const (
	// Safe, the default, means the safe capacity of the resource, or else the capacity divided by the
	// number of holders, as the last lease said. Before the first lease it means 0.
	Safe OnLoss = holder.Safe
	// Pessimistic means 0.
	Pessimistic OnLoss = holder.Pessimistic
	// Optimistic means what the program wants, also if no server has answered for 2 s after the start.
	// Nothing bounds the sum over all programs.
	Optimistic OnLoss = holder.Optimistic
)

// Config describes a Client.
type Config struct {
	// Servers are the gRPC listeners of headgate servers with leases, as host:port.
	Servers []string
	// TLS encrypts the connections; nil does not. Without a ServerName, the host of each address is
	// the name in its certificate.
	TLS *tls.Config
	// Token is the token of a caller, as headgate token prints it, for servers with auth. TokenFile has it in a file,
	// which is read each time that a stream is opened, so that tokens can rotate. Without TLS, the network sees
	// the token.
	Token, TokenFile string
	// OnLoss decides after the end of a lease.
	OnLoss OnLoss
	// Dial opens connections; nil opens TCP connections.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Log gets a line when leases have ended, when all are back, for refused claims, and for faults of servers: at most
	// one line of a kind every 10 s. nil logs nothing. [State] has the same for each lease.
	Log *slog.Logger
}

// check fills in the defaults.
func (c *Config) check() error {
	switch {
	case len(c.Servers) == 0:
		return errors.New("lease: Servers is empty: name the gRPC listener of a headgate server with leases, like 127.0.0.1:8081")
	case c.Token != "" && c.TokenFile != "":
		return errors.New("lease: Token and TokenFile are both set: leave one of them out")
	case strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("lease: Token has a character that no token has: use the text that headgate token prints")
	case c.OnLoss > Optimistic:
		return errors.New("lease: OnLoss is not known: use Safe, Pessimistic or Optimistic")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}
