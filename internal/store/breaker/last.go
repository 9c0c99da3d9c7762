package breaker

import (
	"sync/atomic"
	"time"
)

// Failure is a failed call. The zero Failure stands for none.
type Failure struct {
	At  time.Time
	Err error
}

// LastFailure has the last failed call of a server. The zero LastFailure has none. It is safe for concurrent use, and costs nothing
// while calls succeed.
type LastFailure struct{ last atomic.Pointer[Failure] }

// Note replaces the failure.
func (l *LastFailure) Note(at time.Time, err error) { l.last.Store(&Failure{at, err}) }

// Load returns the last failure.
func (l *LastFailure) Load() Failure {
	if f := l.last.Load(); f != nil {
		return *f
	}
	return Failure{}
}

// Later returns the later one of two failures.
func (f Failure) Later(other Failure) Failure {
	if other.At.After(f.At) {
		return other
	}
	return f
}
