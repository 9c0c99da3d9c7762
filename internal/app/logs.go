package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/accesslog"
)

// logLevel is the component that sets the level of the log.
type logLevel struct {
	defaults

	level *slog.LevelVar
}

// Reload implements Component.
func (l *logLevel) Reload(next *config.Config) (Change, error) {
	return Change{Commit: func() { l.level.Set(next.Log.Level) }}, nil
}

// accessLog is the component that writes one line for each request.
type accessLog struct {
	defaults

	log    *slog.Logger
	opened *accesslog.Log
}

// newAccessLog returns nil when the access log is off, and for a probe.
func newAccessLog(o *Options) (*accessLog, error) {
	c := &o.Config.Log
	if c.Access == config.AccessOff || o.Server { // Only the proxy writes an access log.
		return nil, nil //nolint:nilnil // because no access log is configured
	}
	format, ok := accesslog.ParseFormat(string(c.Access))
	if !ok {
		return nil, fmt.Errorf("app: unknown log.access %q: write off, json or combined", c.Access)
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
	return []file{{partAccessLog, a.opened.Reopen, func(err error) {
		a.log.Error("access log file not opened again: lines still go to the previous file", "error", err)
	}}}
}

// Drain writes the buffered lines.
func (a *accessLog) Drain(context.Context) error {
	if err := a.opened.Close(); err != nil {
		a.log.Error("access log not closed cleanly: the last lines may be missing", "error", err)
	}
	return nil
}
