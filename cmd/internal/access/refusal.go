package access

import (
	"errors"
	"time"
)

// ErrNoCredentials says that a listener needs a token or a client certificate, and the client sent none.
var ErrNoCredentials = errors.New("a token or a client certificate is needed: send the token of a caller in server.callers")

// ErrWrongCredentials says that the token or the certificate belongs to no caller, or has ended.
var ErrWrongCredentials = errors.New("the token or certificate belongs to no caller, or has ended: ask the operator for another one")

// ForbiddenError says what a caller may not do, and which setting would allow it.
type ForbiddenError struct{ Text string }

// Error implements error.
func (e *ForbiddenError) Error() string { return e.Text }

// BusyError says that a client is above a limit of server.limits. RetryAfter is the time until it may ask
// again.
type BusyError struct {
	limit      string // the setting
	RetryAfter time.Duration
}

// Error implements error.
func (e *BusyError) Error() string {
	return "the client is above server.limits." + e.limit + ": ask less often"
}

// Reason is why a client was refused.
type Reason uint8

// The reasons of refusals.
const (
	Unauthenticated Reason = iota // without credentials, or with wrong ones
	Forbidden                     // outside the scopes, domains or rules of the caller
	Busy                          // above a limit of server.limits
	reasons
)

// Reasons lists all reasons.
func Reasons() []Reason { return []Reason{Unauthenticated, Forbidden, Busy} }

// String returns the name of a reason in metrics.
func (r Reason) String() string {
	return [...]string{"unauthenticated", "forbidden", "busy"}[r]
}

// ReasonOf gives the reason of an error of this package. ok is false for other errors.
func ReasonOf(err error) (r Reason, ok bool) {
	if errors.Is(err, ErrNoCredentials) || errors.Is(err, ErrWrongCredentials) {
		return Unauthenticated, true
	}
	if _, forbidden := errors.AsType[*ForbiddenError](err); forbidden {
		return Forbidden, true
	}
	if _, busy := errors.AsType[*BusyError](err); busy {
		return Busy, true
	}
	return 0, false
}
