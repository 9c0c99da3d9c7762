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

// Run serves until it receives a signal, and then drains. SIGHUP reloads the configuration.
func (p proxyCommand) Run(ctx context.Context, stdout io.Writer, stderr errorWriter, k *kong.Context) error {
	c, err := p.loadProxy()
	if err != nil {
		writeMisspelled(stderr, k) // A misspelled variable may have caused the error.
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
		log.Warn("unknown environment variable", "warning", warning)
	}
	return app.Run(ctx, app.Options{
		Config: c, Load: p.reloader(), Path: p.path(), Hangup: hangup, AccessOutput: stdout,
		Log: log, Level: level, Version: version, Commit: commit,
	})
}

// loadProxy reads a configuration that must name an upstream.
func (p proxyCommand) loadProxy() (*config.Config, error) {
	c, err := p.load()
	if err == nil && c.Proxy.Upstream == nil {
		return nil, configError{fmt.Errorf(
			"proxy: %s has no upstream: write proxy: {upstream: http://127.0.0.1:9000}", p.Config)}
	}
	return c, err
}

// reloader returns a function that reads the configuration again. It returns nil for standard
// input, which can be read only once.
func (p proxyCommand) reloader() func() (*config.Config, error) {
	if p.Config == standardInput {
		return nil
	}
	return p.load
}

// newLog writes text lines to a terminal and JSON to any other output.
func newLog(w io.Writer, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// redirectStandardLog sends the lines of package log to l at level debug, until the returned
// function runs. net/http writes a line there for each response that an upstream sends
// without a request.
func redirectStandardLog(l *slog.Logger) func() {
	output, flags := standard.Writer(), standard.Flags()
	standard.SetOutput(slog.NewLogLogger(l.Handler(), slog.LevelDebug).Writer())
	standard.SetFlags(0)
	return func() {
		standard.SetOutput(output)
		standard.SetFlags(flags)
	}
}
