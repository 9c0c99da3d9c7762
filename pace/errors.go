package pace

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrTooManyWaiters says that as many wait as Config.MaxWaiters allows.
	ErrTooManyWaiters = errors.New("pace: too many waiters: ask for less at once, or raise MaxWaiters")
	// ErrTooLarge says that no window ever has as many units as were asked for at once.
	ErrTooLarge = errors.New("pace: more units at once than any window has for this instance: " +
		"ask for fewer, raise the limit, or make windows longer")
	// ErrClosed says that the pacer was closed, or its source has failed for good.
	ErrClosed = errors.New("pace: closed")
	// ErrTimeout is what a [TimeoutError] is, by errors.Is.
	ErrTimeout = errors.New("pace: timed out")
)

// TimeoutError says that a permit could not be had within the time that was allowed,
// or that it was found at once that it could not be.
type TimeoutError struct {
	Provider string
	MaxWait  time.Duration
	// Opens is the wall time from which it could be had, as far as is known: the zero
	// time when no known plan ever admits it.
	Opens time.Time
	// Cause says why the provider is closed, when it is for another reason than
	// its limit: the source is lost, or there is no plan yet.
	Cause string
}

// Error says how long was allowed, and when to come again.
func (e *TimeoutError) Error() string {
	text := fmt.Sprintf("pace: provider %q: no permit within %v", e.Provider, max(e.MaxWait, 0))
	if e.Cause != "" {
		text += ": " + e.Cause
	}
	if e.Opens.IsZero() {
		return text
	}
	return text + ": it could be had at " + e.Opens.UTC().Format("15:04:05.000")
}

// Is says that it is an [ErrTimeout].
func (e *TimeoutError) Is(target error) bool { return target == ErrTimeout }

// Timeout says that it is one, as net.Error has it.
func (e *TimeoutError) Timeout() bool { return true }
