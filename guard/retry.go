package guard

import (
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// DefaultRetryAfterMax is the default of Config.RetryAfterMax.
	DefaultRetryAfterMax = 24 * time.Hour
	// MostRetryAfter is the longest time that a timer of Node.js can wait, in whole seconds: 2^31 - 1 ms. A client with a
	// longer Retry-After returns after 1 ms.
	MostRetryAfter = 2_147_483 * time.Second
)

// checkBounds rejects an invalid namespace, and a RetryAfterMax with which clients would return at once.
func (c *Config) checkBounds() error {
	if err := CheckNamespace(c.Namespace); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	if c.RetryAfterMax != 0 && (c.RetryAfterMax < time.Second || c.RetryAfterMax > MostRetryAfter) {
		return fmt.Errorf("guard: RetryAfterMax is %v: give a time from 1s to %v, or 0 for %v", c.RetryAfterMax, MostRetryAfter,
			DefaultRetryAfterMax)
	}
	return nil
}

// Spread returns the wait for a client whose request can pass at a time that is not known: 1 s or 2 s, by chance. Many clients may be
// refused at one time, and must not return at one time. All calls for one decision return the same wait.
func (r *Result) Spread() time.Duration {
	if r.spread == 0 {
		r.spread = uint8(Spread() / time.Second)
	}
	return time.Duration(r.spread) * time.Second
}

// Spread draws a wait for a refusal without a Result.
func Spread() time.Duration { return time.Second * time.Duration(1+rand.IntN(2)) }

// RetryAfterMax gives the bound of the time until a retry that a front states.
func (a *Answer) RetryAfterMax() time.Duration {
	if a.from == nil || a.from.config.RetryAfterMax == 0 {
		return DefaultRetryAfterMax
	}
	return a.from.config.RetryAfterMax
}

// XShouldRetry reports whether a front adds X-Should-Retry: false to a refusal that lasts more than a minute.
func (a *Answer) XShouldRetry() bool { return a.from != nil && a.from.config.XShouldRetry }
