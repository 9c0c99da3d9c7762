package open

import (
	"context"
	"log/slog"
	"time"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
)

// Follow reloads g until ctx ends: when the configuration at path changes, or a file that its
// identity names. c is the Config that g was made from, as config.Load gave it. Changes since
// that Load count too.
//
// Follow calls told after each change, with the Config that took effect, or with the reason
// why the old one stays. One goroutine, that of Follow, makes these calls. A nil told logs
// to slog.Default.
//
// Counters and bans are kept, as guard.Guard.Reload says. The report.Report of the guard
// (report.Of) is kept too: it counts reloads and failed reloads. Another Observer ends with
// the first reload; a program with such an Observer calls config.Watch.
//
// The error says that the system cannot watch files. It is nil when ctx has ended.
func Follow(ctx context.Context, path string, c *config.Config, g *guard.Guard, notify func(*config.Config, error)) error {
	if notify == nil {
		notify = logReload
	}
	return config.Watch(ctx, path, c, func() []string {
		next, err := config.Load(path)
		if err == nil {
			err = reload(next, g)
		}
		countReload(report.Of(g), err)
		if err != nil {
			notify(nil, err)
			return c.Files()
		}
		c = next
		notify(next, nil)
		return next.Files()
	})
}

func logReload(c *config.Config, err error) {
	if err != nil {
		slog.Default().Error("headgate: the configuration was not reloaded: the one before stays in effect", "error", err)
		return
	}
	slog.Default().Info("headgate: the configuration was reloaded", "rules", len(c.Rules))
}

// countReload counts a reload of a guard that reports to counted, which may be nil.
func countReload(counted *report.Report, err error) {
	switch {
	case counted == nil:
	case err != nil:
		counted.Reloads.Failed()
	default:
		counted.Reloads.Loaded(time.Now())
	}
}

func reload(c *config.Config, g *guard.Guard) error {
	described, err := GuardConfig(c, g.Store())
	if err != nil {
		return err
	}
	if described.WithoutState {
		return errUnfollowed
	}
	counted := report.Of(g)
	if counted == nil {
		return g.Reload(described)
	}
	var show func()
	described.Observer, show = counted.PrepareConfig(&described)
	if err := g.Reload(described); err != nil {
		return err
	}
	show()
	return nil
}
