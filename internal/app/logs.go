package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/accesslog"
)

// logLevel is the part that sets the level of the log.
type logLevel struct {
	defaults

	level *slog.LevelVar
}

// Reload implements Part.
func (l *logLevel) Reload(next *config.Config) (Change, error) {
	return Change{Commit: func() { l.level.Set(next.Log.Level) }}, nil
}

// accessLog is the part that writes a line for each request.
type accessLog struct {
	defaults

	log    *slog.Logger
	opened *accesslog.Log
}

// newAccessLog gives nil for a configuration without one, and for a probe.
func newAccessLog(o *Options) (*accessLog, error) {
	c := &o.Config.Log
	if c.Access == config.AccessOff {
		return nil, nil //nolint:nilnil // because no access log is configured
	}
	format, ok := accesslog.ParseFormat(string(c.Access))
	if !ok {
		return nil, fmt.Errorf("app: log.access %q is not known: write off, json or combined", c.Access)
	}
	if o.probe {
		if err := probeAccessLog(c.AccessFile); err != nil {
			return nil, fmt.Errorf("app: log.access_file: %w", err)
		}
		return nil, nil //nolint:nilnil // because a probe leaves no file behind
	}
	opened, err := accesslog.Open(accesslog.Config{Format: format, File: c.AccessFile, Output: o.AccessOutput, Report: o.Log})
	if err != nil {
		return nil, fmt.Errorf("app: log.access_file: %w", err)
	}
	return &accessLog{log: o.Log, opened: opened}, nil
}

// files implements reopener.
func (a *accessLog) files() []file {
	return []file{{partAccessLog, a.opened.Reopen, func(err error) { a.log.Error("the access log stays where it was", "error", err) }}}
}

// Drain writes what is still to be written.
func (a *accessLog) Drain(context.Context) error {
	if err := a.opened.Close(); err != nil {
		a.log.Error("the end of the access log may be missing", "error", err)
	}
	return nil
}
