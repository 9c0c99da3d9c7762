package readfile

import (
	"context"
	"errors"
	"time"
)

const (
	// Quiet is how long a folder must be without events before its files are read. Editors
	// write, rename and remove files, and the states in between are not valid.
	Quiet = 200 * time.Millisecond
	// mostQuiet bounds the wait for quiet in a folder with continuous events.
	mostQuiet = 2 * time.Second
)

// ErrNoEvents means that the system has stopped sending file events.
var ErrNoEvents = errors.New("the system has stopped sending file events")

// AfterEvents calls look until ctx ends, and then returns nil: after each series of events, once
// Quiet has passed or 2 s after the first event, and also at each interval of every. A fault counts as
// an event, because it usually means that events were lost. It returns ErrNoEvents when one of the
// channels is closed. A nil channel is valid, and sends nothing.
func AfterEvents[E any](ctx context.Context, events <-chan E, faults <-chan error, every time.Duration, look func()) error {
	unasked := time.NewTicker(every)
	defer unasked.Stop()
	calm := time.NewTimer(mostQuiet)
	calm.Stop()
	defer calm.Stop()
	var first time.Time // The time of the first event since the last look, or zero.
	for {
		var open bool
		select {
		case <-ctx.Done():
			return nil
		case _, open = <-events:
		case _, open = <-faults:
		case <-calm.C:
			first = time.Time{}
			look()
			continue
		case <-unasked.C:
			look()
			continue
		}
		if !open {
			return ErrNoEvents
		}
		if first.IsZero() {
			first = time.Now()
		}
		calm.Reset(max(0, min(Quiet, mostQuiet-time.Since(first))))
	}
}
