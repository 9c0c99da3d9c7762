package config

import (
	"context"

	"github.com/headgate/headgate/guard"
)

// Follow reloads g when the configuration at path, or a file that its identity
// names, changes, until ctx ends. c is what g was made from, as Load gave it: what
// has changed since then is a change too. Follow tells report of each: of the Config
// that took effect, or of why one did not, when nothing has changed; report is
// called by one goroutine, that of Follow.
//
// Counters and bans go on as guard.Guard.Reload says. The guard has no Observer
// afterwards: who wants one calls Watch, and sets it in the GuardConfig of a reload.
//
// The error says that the system gives no watch; it is nil when ctx has ended.
func Follow(ctx context.Context, path string, c *Config, g *guard.Guard, report func(*Config, error)) error {
	return Watch(ctx, path, c, func() []string {
		next, err := Load(path)
		if err == nil {
			err = next.reload(g)
		}
		if err != nil {
			report(nil, err)
			return c.Files()
		}
		c = next
		report(next, nil)
		return next.Files()
	})
}

func (c *Config) reload(g *guard.Guard) error {
	described, err := c.GuardConfig(g.Store())
	if err != nil {
		return err
	}
	return g.Reload(described)
}
