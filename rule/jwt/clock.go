package jwt

import "time"

// clockOr returns the clock of a Config, or the machine's clock.
func clockOr(given func() time.Time) func() time.Time {
	if given != nil {
		return given
	}
	return time.Now
}
