package config

import "errors"

// ErrStoreChanged says that a configuration has another store than the one that a
// reload is to count in. Config.GuardConfig wraps it.
var ErrStoreChanged = errors.New("another store takes effect at the next start alone, since counters would begin anew: restart")

// StoreNeedsRestart lists the settings of the store that are others in next, and take
// effect at the next start alone. It is for what a reload logs; a next that GuardConfig
// refuses with ErrStoreChanged is none to reload.
func (c *Config) StoreNeedsRestart(next *Config) []string {
	if c.Shared == nil || next.Shared == nil {
		return nil
	}
	a, b := c.Shared, next.Shared
	var settings []string
	for _, setting := range [...]struct {
		name    string
		differs bool
	}{
		{"store", a.User != b.User || a.Password != b.Password || a.TLS != b.TLS},
		{"store_password_file", a.PasswordFile != b.PasswordFile},
		{"store_sentinel_password_file", a.SentinelPasswordFile != b.SentinelPasswordFile},
		{"store_tls", a.Files != b.Files},
		{"deny_cache", a.DenyCache != b.DenyCache},
		{"breaker", a.Breaker != b.Breaker},
	} {
		if setting.differs {
			settings = append(settings, setting.name)
		}
	}
	return settings
}
