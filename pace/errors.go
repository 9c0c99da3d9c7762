package pace

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrTooManyWaiters reports that Config.MaxWaiters callers are waiting already.
	ErrTooManyWaiters = errors.New("pace: too many waiters: ask for less at once, or raise MaxWaiters")
	// ErrTooLarge reports a request for more units than any window has.
	ErrTooLarge = errors.New("pace: more units at once than any window has for this instance: " +
		"ask for fewer, raise the limit, or make windows longer")
	// ErrClosed reports that the pacer was closed, or that its source failed permanently.
	ErrClosed = errors.New("pace: closed")
	// ErrTimeout matches every [TimeoutError] with errors.Is.
	ErrTimeout = errors.New("pace: timed out")
)

// TimeoutError reports that no permit opened within the allowed time, or that none can
// open within it.
type TimeoutError struct {
	Provider string
	MaxWait  time.Duration
	// Opens is the wall time at which the permit is predicted to open. It is zero if no
	// known plan ever allows the request.
	Opens time.Time
	// Cause is the reason if it is not the limit: the source is lost, or there is no plan
	// yet.
	Cause string
}

// Error contains the allowed time and the time at which to try again.
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

// Is reports whether target is [ErrTimeout].
func (e *TimeoutError) Is(target error) bool { return target == ErrTimeout }

// Timeout implements net.Error's method and returns true.
func (e *TimeoutError) Timeout() bool { return true }
