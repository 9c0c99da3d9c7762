package main

import (
	"context"
	"fmt"
	"io"
	standard "log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/app"
)

type proxyCommand struct {
	configFlag
}

// Run serves until a signal comes, then drains. SIGHUP reads the configuration again.
func (p proxyCommand) Run(ctx context.Context, stdout io.Writer, stderr errorWriter, k *kong.Context) error {
	c, err := p.loadProxy()
	if err != nil {
		writeMisspelled(stderr, k) // One may be why.
		return err
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	level := new(slog.LevelVar)
	level.Set(c.Log.Level)
	log := newLog(stderr.Writer, level)
	restore := redirectStandardLog(log)
	defer restore()
	for _, warning := range misspelled(k) {
		log.Warn("a variable is not known", "warning", warning)
	}
	return app.Run(ctx, app.Options{
		Config: c, Load: p.again(), Path: p.path(), Hangup: hangup, AccessOutput: stdout,
		Log: log, Level: level, Version: version, Commit: commit,
	})
}

// loadProxy reads a configuration that must name the service.
func (p proxyCommand) loadProxy() (*config.Config, error) {
	c, err := p.load()
	if err == nil && c.Proxy.Upstream == nil {
		return nil, configError{fmt.Errorf(
			"proxy: %s names no service to stand before: write proxy: {upstream: http://127.0.0.1:9000}", p.Config)}
	}
	return c, err
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

// redirectStandardLog sends package log's lines to l, at the level debug, until the
// returned function runs. net/http writes there what an upstream sends that no request
// asked for: a line for each such answer.
func redirectStandardLog(l *slog.Logger) func() {
	output, flags := standard.Writer(), standard.Flags()
	standard.SetOutput(slog.NewLogLogger(l.Handler(), slog.LevelDebug).Writer())
	standard.SetFlags(0)
	return func() {
		standard.SetOutput(output)
		standard.SetFlags(flags)
	}
}
