//go:build !linux

package app

// fastAvailable reports whether this system has data_plane fast.
func fastAvailable() bool { return false }
