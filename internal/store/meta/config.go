package meta

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Config sets how a Client reaches its server. Each field has its default when it is 0 or nil.
type Config struct {
	// Addr is the server's host and port.
	Addr string
	// Connections is the number of connections; 2.
	Connections int
	// Dial makes a connection; net.Dialer's. Dial must return when its context ends.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// DialTimeout bounds the making of a connection, including the server's first answer; 1 s.
	DialTimeout time.Duration
	// StallTimeout is how long a connection may be silent while requests wait, or may accept no
	// byte of a write; 2 s. A stall is noticed up to a quarter later.
	StallTimeout time.Duration
	// MaxBackoff is the longest pause between two attempts to connect; 1 s. The first pause is a
	// 64th of it.
	MaxBackoff time.Duration
	// MaxWaiting bounds the waiting requests on each connection, including those whose callers have
	// left; 8192.
	MaxWaiting int
	// MaxValue is the longest value in bytes, sent or received; 1 MiB, which is the server's
	// default for a whole item.
	MaxValue int
}

// Limits of a Config.
const (
	maxConnections = 64
	maxWaiting     = 1 << 20
	maxValue       = 1 << 20
)

// withDefaults sets the defaults. The error names an invalid setting.
func (c Config) withDefaults() (Config, error) {
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		return c, fmt.Errorf("meta: address %q: %w: write host:port", c.Addr, err)
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	for _, f := range []struct {
		name                string
		value               *int
		standard, low, high int
	}{
		{"Connections", &c.Connections, 2, 1, maxConnections},
		{"MaxWaiting", &c.MaxWaiting, 8192, 1, maxWaiting},
		{"MaxValue", &c.MaxValue, maxValue, 1, maxValue},
	} {
		if *f.value == 0 {
			*f.value = f.standard
		}
		if *f.value < f.low || *f.value > f.high {
			return c, fmt.Errorf("meta: %s is %d: use %d to %d", f.name, *f.value, f.low, f.high)
		}
	}
	for _, f := range []struct {
		value    *time.Duration
		standard time.Duration
	}{{&c.DialTimeout, time.Second}, {&c.StallTimeout, 2 * time.Second}, {&c.MaxBackoff, time.Second}} {
		if *f.value == 0 {
			*f.value = f.standard
		}
		if *f.value < time.Millisecond {
			return c, errors.New("meta: DialTimeout, StallTimeout and MaxBackoff are at least 1ms, or 0 for the default")
		}
	}
	return c, nil
}
