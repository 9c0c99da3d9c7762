//go:build !linux

package proxy

// fastAvailable reports whether this system has data_plane fast.
func fastAvailable() bool { return false }
