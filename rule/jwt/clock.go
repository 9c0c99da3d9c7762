package jwt

import "time"

// clockOr gives the clock of a Config, or the machine's.
func clockOr(given func() time.Time) func() time.Time {
	if given != nil {
		return given
	}
	return time.Now
}
