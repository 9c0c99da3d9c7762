package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// DefaultPrefix is the default prefix of all keys.
const DefaultPrefix = "/headgate/lease/"

const (
	minTTL, defaultTTL, maxTTL = time.Second, 5 * time.Second, 5 * time.Minute
	// maxName bounds the name of a group, and maxAddress an address, in bytes.
	maxName, maxAddress = 128, 256
)

// Config describes one server of a group. Open, Group and Address are required.
type Config struct {
	// Open makes a client that ends with life. It is called when etcd is needed first, and after an error of the client's
	// credentials.
	Open func(life context.Context) (*clientv3.Client, error)
	// Group is the name of the group: 1 to 128 of A-Z, a-z, 0-9 and . _ -
	Group string
	// Address is the host:port of this server, as clients have it in their lists.
	Address string
	// Prefix begins all keys, and ends with /. "" means DefaultPrefix.
	Prefix string
	// TTL is the time after which another server takes over from a master that failed: 1 s to 5 min, 5 s by default. etcd counts
	// whole seconds, and notices the end up to a second late.
	TTL time.Duration
	// Log gets a line for each election, and at most one every 10 s while etcd is unreachable. nil logs nothing.
	Log *slog.Logger
}

// withDefaults sets the defaults. The error names an invalid setting.
func (c Config) withDefaults() (Config, error) {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.TTL == 0 {
		c.TTL = defaultTTL
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Open == nil:
		return c, errors.New("lease/election: Open is nil: make a client of etcd there")
	case !ValidGroup(c.Group):
		return c, fmt.Errorf("lease/election: Group %.40q: use 1 to %d of A-Z, a-z, 0-9 and . _ -", c.Group, maxName)
	case c.Address == "" || len(c.Address) > maxAddress:
		return c, fmt.Errorf("lease/election: Address has %d bytes: use a host:port of 1 to %d", len(c.Address), maxAddress)
	case len(c.Prefix) > maxAddress || !strings.HasSuffix(c.Prefix, "/"):
		return c, fmt.Errorf("lease/election: Prefix %.40q: use at most %d bytes that end with /", c.Prefix, maxAddress)
	case c.TTL < minTTL || c.TTL > maxTTL:
		return c, fmt.Errorf("lease/election: TTL %v: use %v to %v, or 0 for %v", c.TTL, minTTL, maxTTL, defaultTTL)
	}
	return c, nil
}

// ValidGroup reports whether a text may be the name of a group.
func ValidGroup(name string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	return name != "" && len(name) <= maxName && strings.Trim(name, letters) == ""
}
