package config

import "errors"

// ErrStoreChanged means that a reload names another store than the running one.
// Config.GuardConfig wraps it.
var ErrStoreChanged = errors.New("a reload cannot change the store, because all counters would be lost: restart")

// NeedsRestart lists the settings that differ in next and that take effect only at the next start. A
// reload logs them. Do not call it if GuardConfig has rejected next with ErrStoreChanged.
func (c *Config) NeedsRestart(next *Config) []string {
	settings := c.fixed.Changed(&next.fixed)
	// The password in the store's address is not among the fixed values, because fmt would print it.
	a, b := c.Shared, next.Shared
	if a == nil || b == nil {
		return settings
	}
	if a.PerSecond.otherAccess(b.PerSecond) {
		settings = append([]string{perSecondName}, settings...)
	}
	if a.SentinelPassword != b.SentinelPassword {
		settings = append([]string{sentinelPasswordName}, settings...)
	}
	if a.otherAccess(b) {
		settings = append([]string{"store"}, settings...)
	}
	return settings
}

// otherAccess reports whether two addresses of one store differ in credentials or TLS.
func (s *SharedStore) otherAccess(other *SharedStore) bool {
	return s != nil && other != nil && (s.User != other.User || s.Password != other.Password || s.TLS != other.TLS)
}
