package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/app"
)

type proxyCommand struct {
	configFlag
}

// Run serves until a signal comes, then drains. SIGHUP reads the configuration again.
func (p proxyCommand) Run(ctx context.Context, stdout io.Writer, stderr errorWriter) error {
	c, err := p.load()
	if err != nil {
		return err
	}
	if c.Proxy.Upstream == nil {
		return configError{fmt.Errorf(
			"proxy: %s names no service to stand before: write proxy: {upstream: http://127.0.0.1:9000}", p.Config)}
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	level := new(slog.LevelVar)
	level.Set(c.Log.Level)
	return app.Run(ctx, app.Options{
		Config: c, Load: p.again(), Path: p.path(), Hangup: hangup, AccessOutput: stdout,
		Log: newLog(stderr.Writer, level), Level: level, Version: version, Commit: commit,
	})
}

// again reads the configuration for a reload; standard input is read once.
func (p proxyCommand) again() func() (*config.Config, error) {
	if p.Config == standardInput {
		return nil
	}
	return p.load
}

// newLog writes lines that people read to a terminal, and JSON to everything else.
func newLog(w io.Writer, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
