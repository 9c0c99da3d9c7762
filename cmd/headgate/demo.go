package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/app"
	"github.com/headgate/headgate/internal/demo"
)

type demoCommand struct {
	For time.Duration `help:"End by itself after this time, as in 20s; without it, Ctrl-C ends the demo." placeholder:"TIME"`
}

// Run starts a service, a proxy before it and clients, on free ports of this
// machine, and ends all of them.
func (d demoCommand) Run(ctx context.Context, stdout io.Writer, stderr errorWriter) (err error) {
	if d.For < 0 {
		return errors.New("demo: --for is negative: write a time like 20s")
	}
	if d.For > 0 {
		bounded, cancel := context.WithTimeout(ctx, d.For)
		defer cancel()
		ctx = bounded
	}
	c, err := config.Parse(demo.Settings())
	if err != nil {
		return err
	}
	upstream, err := demo.StartUpstream(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, upstream.Close()) }()
	c.Proxy.Listen, c.Proxy.Upstream, c.Admin.Listen = "127.0.0.1:0", upstream.URL(), "127.0.0.1:0"
	instance, err := app.Start(ctx, app.Options{
		Config: c, Log: newLog(stderr.Writer, slog.LevelWarn), Version: version, Commit: commit,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, instance.Stop()) }()
	at := instance.Addresses()
	return demo.Run(ctx, demo.Options{
		Proxy: at.Proxy, Admin: at.Admin, Upstream: upstream, Clients: demo.Clients(), Acts: demo.Story(),
		Out: stdout, Terminal: isTerminal(stdout),
	})
}
