package config

import "errors"

// ErrStoreChanged says that a configuration has another store than the one that a
// reload is to count in. Config.GuardConfig wraps it.
var ErrStoreChanged = errors.New("another store takes effect at the next start alone, since counters would begin anew: restart")

// NeedsRestart lists the settings that are others in next and take effect at the next start
// alone, as their declarations say. It is for what a reload logs; a next that GuardConfig
// refuses with ErrStoreChanged is none to reload.
func (c *Config) NeedsRestart(next *Config) []string {
	settings := c.fixed.Changed(&next.fixed)
	// The password of the store's address is not among fixed: fmt would print it.
	a, b := c.Shared, next.Shared
	if a != nil && b != nil && (a.User != b.User || a.Password != b.Password || a.TLS != b.TLS) {
		settings = append([]string{"store"}, settings...)
	}
	return settings
}
