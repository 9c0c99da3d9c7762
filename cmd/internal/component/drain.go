package component

import (
	"context"
	"errors"
	"time"
)

// ErrStopping is the error of a reload after the stop of the instance.
var ErrStopping = errors.New("app: the instance is stopping: start a new instance with the new configuration")

const (
	// LastOfOne bounds what one component still does after the end of its Drain's context, such as the return of unused units.
	LastOfOne = time.Second
	// LastDrain bounds what all components together do after the ShutdownTimeout. A disk that hangs under the journal of metering takes
	// one second more.
	LastDrain = 3 * time.Second
)

// lastDrainKey is the key of the time by which all components must have ended.
type lastDrainKey struct{}

// WithLast notes that all components must have ended by a time.
func WithLast(ctx context.Context, by time.Time) context.Context {
	return context.WithValue(ctx, lastDrainKey{}, by)
}

// Lastly gives the context for work of a component that begins when requests have ended: for at most d, or LastOfOne if ctx has ended
// meanwhile, and never beyond the time of WithLast.
func Lastly(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		d = min(d, LastOfOne)
	}
	until := time.Now().Add(d)
	if by, found := ctx.Value(lastDrainKey{}).(time.Time); found && by.Before(until) {
		until = by
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

// Within waits for f until ctx ends. It reports whether f has ended. Otherwise f goes on, and ends with the process.
func Within(ctx context.Context, f func()) bool {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	select {
	case <-ended:
		return true
	case <-ctx.Done():
		return false
	}
}
