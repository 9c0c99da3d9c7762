package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/headgate/headgate/cmd/internal/accesslog"
	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/internal/config"
)

// Probe checks a configuration as Start does, without listening. It creates each component and
// opens each file that the configuration names. It makes no connection and leaves nothing on
// the disk. A configuration without an upstream and a server belongs to a Go program.
func Probe(c *config.Config) error {
	i := newInstance(Options{Config: c, Log: slog.New(slog.DiscardHandler), probe: true})
	err := i.makeComponents()
	for setting, address := range listeners(c) {
		if problem := listen.Probe(address); problem != nil {
			err = errors.Join(err, listenError(setting, problem))
		}
	}
	if err != nil {
		err = c.Located(err)
	}
	return errors.Join(err, i.drainComponents(context.Background()))
}

// listenError is the error of a listener that cannot be opened.
func listenError(setting string, err error) error {
	return &config.SettingError{Path: setting, Err: fmt.Errorf("app: %s: %w", setting, err)}
}

// listeners returns the addresses of the proxy and the server, by their settings.
func listeners(c *config.Config) map[string]string {
	all := map[string]string{}
	if c.Proxy.Upstream != nil {
		all["proxy.listen"] = c.Proxy.Listen
	}
	if s := c.Server; s != nil {
		all["server.grpc"], all["server.http"], all["server.resp"] = s.GRPC.Address, s.HTTP.Address, s.RESP.Address
	}
	return all
}

// storeOptions makes every connection of a probe fail.
func storeOptions(o *Options) open.Options {
	to := open.Options{Log: o.Log}
	if o.probe {
		to.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errProbe }
	}
	return to
}

var errProbe = errors.New("app: a probe opens no connection")

// probeAccessLog checks the access log's file without creating it.
func probeAccessLog(path string) error {
	if path == "" {
		return nil
	}
	return accesslog.Probe(path)
}
