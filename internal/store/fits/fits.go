// Package fits reports which limits a shared store can count. It needs no connection, and links
// no client of a store. So a program can check the limits of a configuration.
package fits

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/script"
)

// Redis reports whether Redis can count a policy exactly. The error is a *limit.PolicyError
// with the nearest policy that Redis can count.
func Redis(policy headgate.Policy) error {
	_, err := script.Compile(policy)
	return err
}

// Memcached reports whether Memcached can count a policy. The error is a *limit.PolicyError
// with an alternative.
func Memcached(policy headgate.Policy) error {
	if limit.TraitsOf(policy.Algorithm).Grows {
		return &limit.PolicyError{
			Field:   "algorithm",
			Problem: policy.Algorithm.String() + " is not kept on Memcached, because its items are read and written whole",
			Fix:     "use sliding_window (its error is at most one sub-window), or Redis",
		}
	}
	_, err := limit.Compile(policy)
	return err
}
