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

	"github.com/headgate/headgate/cmd/internal/app"
	"github.com/headgate/headgate/cmd/internal/commandline"
	"github.com/headgate/headgate/cmd/internal/envoy"
	"github.com/headgate/headgate/cmd/internal/envoy/envoyenv"
	"github.com/headgate/headgate/internal/config"
)

type proxyCommand struct {
	configFlag
}

// Run serves until it receives a signal, and then drains. SIGHUP reloads the configuration.
func (p proxyCommand) Run(ctx context.Context, stdout io.Writer, stderr errorWriter, parsed *commandline.Parsed) error {
	return serving{configFlag: p.configFlag, load: p.loadProxy}.run(ctx, stdout, stderr, parsed)
}

// serving is a command that serves a configuration: proxy or server.
type serving struct {
	configFlag

	load   func() (*config.Config, error) // Reads the configuration for the start.
	reload func() (*config.Config, error) // Reads it again; nil reads the file.
	server bool                           // The command is server.

	// The rest is of headgate server.
	domains                                 envoy.DomainSource
	outlets                                 *envoy.Outlets
	healthyWithDomains, healthyAfterDomains bool
	notes                                   []envoyenv.Note
}

func (s serving) run(ctx context.Context, stdout io.Writer, stderr errorWriter, parsed *commandline.Parsed) error {
	c, err := s.load()
	if err != nil {
		writeMisspelled(stderr, parsed) // A misspelled variable may have caused the error.
		return err
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	level := new(slog.LevelVar)
	level.Set(c.Log.Level)
	log := newLog(stderr.Writer, level, c.Log.Format)
	restore := redirectStandardLog(log)
	defer restore()
	for _, warning := range misspelled(parsed) {
		log.Warn("unknown environment variable", "warning", warning)
	}
	logNotes(log, s.notes)
	return app.Run(ctx, app.Options{
		Config: c, Server: s.server, Domains: s.domains, Outlets: s.outlets,
		HealthyWithDomains: s.healthyWithDomains, HealthyAfterDomains: s.healthyAfterDomains,
		Load: s.reloader(), Path: s.path(), Hangup: hangup, AccessOutput: stdout,
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
func (s serving) reloader() func() (*config.Config, error) {
	if s.reload != nil {
		return s.reload
	}
	if s.Config == standardInput {
		return nil
	}
	return s.configFlag.load
}

// newLog writes lines in a format. LogAuto is text for a terminal, and JSON for any other output.
func newLog(w io.Writer, level slog.Leveler, format config.LogFormat) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == config.LogText || format == config.LogAuto && isTerminal(w) {
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
