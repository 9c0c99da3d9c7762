package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/headgate/headgate/cmd/internal/app"
	"github.com/headgate/headgate/cmd/internal/demo"
	"github.com/headgate/headgate/internal/config"
)

type demoCommand struct {
	For time.Duration `help:"End the demo after this time, like 20s. The default is to run until Ctrl-C." placeholder:"TIME"`
	SVG string        `name:"svg" help:"Write a picture of the shares to this file at the end. 22s show the story." placeholder:"FILE"`
}

// Run starts a service, a proxy in front of it, and clients. All of them use free ports of
// this machine. Run stops all of them before it returns.
func (d demoCommand) Run(ctx context.Context, stdout io.Writer, stderr errorWriter) (err error) {
	if d.For < 0 {
		return fmt.Errorf("demo: --for is %s: write a positive time, like 20s", d.For)
	}
	if d.For > 0 {
		bounded, cancel := context.WithTimeout(ctx, d.For)
		defer cancel()
		ctx = bounded
	}
	options := demo.Options{Clients: demo.Clients(), Acts: demo.Story(), Out: stdout, Terminal: isTerminal(stdout)}
	if d.SVG != "" {
		file, err := os.Create(d.SVG)
		if err != nil {
			return fmt.Errorf("demo: the picture cannot be written: %w: make its folder, or name another file", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		options.Picture = file
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
		Config: c, Log: newLog(stderr.Writer, slog.LevelWarn, c.Log.Format), Version: version, Commit: commit,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, instance.Stop()) }()
	at := instance.Addresses()
	options.Proxy, options.Admin, options.Upstream = at.Proxy, at.Admin, upstream
	return demo.Run(ctx, options)
}
