package memcached

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/breaker"
)

// Config says where a Store keeps its counters, and how it reaches them. Servers is
// required; what else is 0 or nil has the default that is named.
type Config struct {
	// Servers are the addresses, host:port, in any order; all processes that share
	// limits name the same ones.
	Servers []string
	// Retries is how often a write is tried again after another process was faster; 16.
	// Each is a round trip or two, within the caller's context.
	Retries int
	// Timeout bounds what is done for several callers at once, when none of them has a
	// deadline; 1 s.
	Timeout time.Duration
	// Breaker says when a server that does not answer is no longer asked.
	Breaker breaker.Config
	// Counters counts each fixed_window that does not count refused attempts in a counter
	// of its own instead of in its key's item: one round trip, and no conflicts. What it
	// does not do then is in the package's comment. All processes that share limits
	// have the same setting: what one kind has counted, the other does not see.
	Counters bool
	// Connections is how many are kept to each server; 2.
	Connections int
	// Dial makes a connection; net.Dialer's.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// DialTimeout bounds making a connection; 1 s.
	DialTimeout time.Duration
	// Log gets one line when a server is given up and one when it is back; nil is none.
	Log *slog.Logger
	// Fallbacks returns the names of the fallbacks that decide while a server does not
	// answer, for the line that says so; nil leaves the names out.
	Fallbacks func() string
	// Clock replaces the servers' clocks, in tests. Its times are after 1970 and count
	// in whole microseconds.
	Clock func() headgate.Instant
}

// Bounds of a Config.
const (
	defaultRetries = 16
	maxRetries     = 1 << 10
	defaultTimeout = time.Second
	maxServers     = 1 << 10
)

// withDefaults fills in what is 0, and tells what does not fit.
func (c Config) withDefaults() (Config, error) {
	if c.Retries == 0 {
		c.Retries = defaultRetries
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	switch {
	case len(c.Servers) == 0:
		return c, errors.New("memcached: no servers: name at least one, host:port")
	case len(c.Servers) > maxServers:
		return c, fmt.Errorf("memcached: %d servers: use at most %d", len(c.Servers), maxServers)
	case c.Retries < 0 || c.Retries > maxRetries:
		return c, fmt.Errorf("memcached: Retries is %d: use 1 to %d", c.Retries, maxRetries)
	case c.Timeout < time.Millisecond:
		return c, fmt.Errorf("memcached: Timeout is %v: use at least 1ms", c.Timeout)
	}
	seen := make(map[string]bool, len(c.Servers))
	for _, addr := range c.Servers {
		if seen[addr] {
			return c, fmt.Errorf("memcached: server %q is named twice: name it once", addr)
		}
		seen[addr] = true
	}
	return c, nil
}
