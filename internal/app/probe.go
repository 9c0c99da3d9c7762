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
	i := &Instance{options: Options{Config: c, Log: slog.New(slog.DiscardHandler), probe: true}}
	i.config.Store(c)
	err := i.wire()
	if problem := listen.Probe(c.Proxy.Listen); problem != nil && c.Proxy.Upstream != nil {
		err = errors.Join(err, fmt.Errorf("app: proxy.listen: %w", problem))
	}
	i.closeStore()
	i.closeLogs()
	return err
}

// storeOptions keeps a probe from connecting.
func (i *Instance) storeOptions() open.Options {
	o := open.Options{Log: i.options.Log}
	if i.options.probe {
		o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errProbe }
	}
	return o
}

var errProbe = errors.New("app: a probe makes no connection")

// probeAccessLog is openAccessLog without a file that is made.
func probeAccessLog(path string) error {
	if path == "" {
		return nil
	}
	return accesslog.Probe(path)
}
