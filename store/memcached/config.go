package memcached

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/headgate/headgate"
)

// Config sets where a Store keeps its counters, and how it connects. Servers or Lookup is required.
// Other fields have the named default when they are 0 or nil.
type Config struct {
	// Servers are the addresses, host:port, in any order. All processes that share limits must list
	// the same servers.
	Servers []string
	// Lookup gives Servers after New has returned, if Servers is empty. It is called until it gives
	// valid servers. Until then, decisions fail with headgate.ErrUnavailable.
	Lookup func(ctx context.Context) ([]string, error)
	// LookupEvery is the interval of further calls of Lookup; 0 makes none. When a server is added
	// or removed, its keys move and begin with empty counts. While processes know different servers,
	// they count these keys apart. A failed Lookup changes nothing.
	LookupEvery time.Duration
	// Retries is how often a write is repeated after another process has written first; 16. Each
	// takes one or two round trips, within the caller's context.
	Retries int
	// Timeout bounds work for several callers when none of them has a deadline; 1 s.
	Timeout time.Duration
	// Breaker configures the circuit breaker of each server.
	Breaker Breaker
	// Counters counts each fixed_window in a counter of its own, instead of in the item of its key,
	// unless it counts refused attempts. A counter needs one round trip and has no conflicts. The
	// package comment lists what counters cannot do. All processes that share limits must have the
	// same setting: items and counters do not see each other's counts.
	Counters bool
	// Connections is the number of connections to each server; 2.
	Connections int
	// Dial makes a connection; net.Dialer's.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// DialTimeout bounds the making of a connection; 1 s.
	DialTimeout time.Duration
	// Log gets one line when a server stops answering and one when it answers again; nil logs nothing.
	Log *slog.Logger
	// Fallbacks gives the names of the fallbacks that decide while a server does not answer, for the
	// log line; nil leaves them out.
	Fallbacks func() string
	// Clock replaces the servers' clocks, in tests. Its times are after 1970, in whole microseconds.
	Clock func() headgate.Instant
}

// Bounds of a Config.
const (
	defaultRetries = 16
	maxRetries     = 1 << 10
	defaultTimeout = time.Second
	maxServers     = 1 << 10
)

// withDefaults sets the defaults. The error names an invalid setting.
func (c Config) withDefaults() (Config, error) {
	if c.Retries == 0 {
		c.Retries = defaultRetries
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if len(c.Servers) > 0 || c.Lookup == nil {
		if err := checkServers(c.Servers); err != nil {
			return c, err
		}
	}
	switch {
	case c.LookupEvery < 0:
		return c, fmt.Errorf("memcached: LookupEvery is %v: use a time above 0, or 0 for one Lookup", c.LookupEvery)
	case c.Retries < 0 || c.Retries > maxRetries:
		return c, fmt.Errorf("memcached: Retries is %d: use 1 to %d", c.Retries, maxRetries)
	case c.Timeout < time.Millisecond:
		return c, fmt.Errorf("memcached: Timeout is %v: use at least 1ms", c.Timeout)
	}
	return c, nil
}

// checkServers gives the error of servers that a Store cannot use.
func checkServers(servers []string) error {
	switch {
	case len(servers) == 0:
		return errors.New("memcached: no servers: name at least one, host:port")
	case len(servers) > maxServers:
		return fmt.Errorf("memcached: %d servers: use at most %d", len(servers), maxServers)
	}
	seen := make(map[string]bool, len(servers))
	for _, addr := range servers {
		if seen[addr] {
			return fmt.Errorf("memcached: server %q is named twice: name it once", addr)
		}
		seen[addr] = true
	}
	return nil
}
