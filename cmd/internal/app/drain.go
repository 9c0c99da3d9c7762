package app

import (
	"context"
	"time"
)

const (
	// lastOfOne bounds what one component still does after the end of its Drain's context, such as the return of unused units.
	lastOfOne = time.Second
	// lastDrain bounds what all components together do after the ShutdownTimeout. A disk that hangs under the journal of metering takes
	// one second more.
	lastDrain = 3 * time.Second
)

// lastDrainKey is the key of the time by which all components must have ended.
type lastDrainKey struct{}

// withLast notes that all components must have ended by a time.
func withLast(ctx context.Context, by time.Time) context.Context {
	return context.WithValue(ctx, lastDrainKey{}, by)
}

// lastly gives the context for work of a component that begins when requests have ended: for at most d, or lastOfOne if ctx has ended
// meanwhile, and never beyond the time of withLast.
func lastly(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		d = min(d, lastOfOne)
	}
	until := time.Now().Add(d)
	if by, found := ctx.Value(lastDrainKey{}).(time.Time); found && by.Before(until) {
		until = by
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

// within waits for f until ctx ends. It reports whether f has ended. Otherwise f goes on, and ends with the process.
func within(ctx context.Context, f func()) bool {
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

// endsLater lets something end while the other components drain. The instance waits for it for lastOfOne after them, and then goes on
// without it.
func (i *Instance) endsLater(what string, end func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end()
	}()
	i.ending = append(i.ending, ending{what, ended})
}

// ending is something that ends while components drain.
type ending struct {
	what  string
	ended chan struct{}
}

// awaitEndings waits for everything of endsLater.
func (i *Instance) awaitEndings(ctx context.Context) {
	ctx, cancel := lastly(ctx, lastOfOne)
	defer cancel()
	for _, e := range i.ending {
		select {
		case <-e.ended:
		case <-ctx.Done():
			i.options.Log.Warn("the process does not wait for a part that has not ended", "part", e.what)
		}
	}
}
