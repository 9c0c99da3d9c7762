package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/accesslog"
	"github.com/headgate/headgate/internal/listen"
	"github.com/headgate/headgate/store/open"
)

// Probe does what Start does before it listens, and undoes it: it opens each file that the configuration names, and
// makes each part. No connection is made, and nothing is left on the disk. A configuration without an
// upstream is one of a Go program, and is probed as far as it goes.
func Probe(c *config.Config) error {
	i := newInstance(Options{Config: c, Log: slog.New(slog.DiscardHandler), probe: true})
	err := i.makeParts()
	if problem := listen.Probe(c.Proxy.Listen); problem != nil && c.Proxy.Upstream != nil {
		err = errors.Join(err, fmt.Errorf("app: proxy.listen: %w", problem))
	}
	return errors.Join(err, i.drainParts(context.Background()))
}

// storeOptions keeps a probe from connecting.
func storeOptions(o *Options) open.Options {
	to := open.Options{Log: o.Log}
	if o.probe {
		to.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errProbe }
	}
	return to
}

var errProbe = errors.New("app: a probe makes no connection")

// probeAccessLog is newAccessLog without a file that is made.
func probeAccessLog(path string) error {
	if path == "" {
		return nil
	}
	return accesslog.Probe(path)
}
