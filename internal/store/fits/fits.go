// Package fits tells which limits a shared store can count, without a connection to one.
// A program that reads a configuration checks limits by it and links no client of a store.
package fits

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/script"
	"github.com/headgate/headgate/limit"
)

// Redis tells whether Redis can count a policy exactly. The error is a
// *limit.PolicyError with the nearest policy that Redis can count.
func Redis(policy headgate.Policy) error {
	_, err := script.Compile(policy)
	return err
}

// Memcached tells whether Memcached can count a policy. The error is a
// *limit.PolicyError with what to use instead.
func Memcached(policy headgate.Policy) error {
	if policy.Algorithm == headgate.SlidingLog {
		return &limit.PolicyError{
			Field: "algorithm", Problem: "sliding_log is not kept on Memcached, whose items are read and written whole",
			Fix: "use sliding_window, whose error is at most one sub-window's, or a store of Redis",
		}
	}
	_, err := limit.Compile(policy)
	return err
}
