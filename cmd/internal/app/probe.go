package app

import (
	"context"
	"errors"
	"log/slog"

	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/internal/config"
)

// Probe checks a configuration as Start does, without listening. It creates each component and
// opens each file that the configuration names. It makes no connection and leaves nothing on
// the disk. A configuration without an upstream and a server belongs to a Go program.
func Probe(c *config.Config) error {
	i := newInstance(Options{Config: c, Log: slog.New(slog.DiscardHandler), probe: true})
	err := i.makeComponents()
	for setting, address := range listeners(c) {
		err = errors.Join(err, component.ProbeListener(setting, address))
	}
	if err != nil {
		err = c.Located(err)
	}
	return errors.Join(err, i.drainComponents(context.Background()))
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
