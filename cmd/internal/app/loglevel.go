package app

import (
	"log/slog"

	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/internal/config"
)

// logLevel is the component that sets the level of the log.
type logLevel struct {
	component.Defaults

	level *slog.LevelVar
}

// Reload implements Component.
func (l *logLevel) Reload(next *config.Config) (component.Change, error) {
	return component.Change{Commit: func() { l.level.Set(next.Log.Level) }}, nil
}
