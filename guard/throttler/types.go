package throttler

import (
	"context"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/throttle"
)

// Class is the criticality of a request. A smaller Class is more important.
type Class = throttle.Class

const (
	// CriticalPlus is for requests whose failure has a serious effect that users see.
	CriticalPlus Class = throttle.CriticalPlus
	// Critical is for requests whose failure users see.
	Critical Class = throttle.Critical
	// SheddablePlus is for requests that can wait for minutes, such as batch work.
	SheddablePlus Class = throttle.SheddablePlus
	// Sheddable is for requests that can be dropped.
	Sheddable Class = throttle.Sheddable
)

// Limits bounds the work that the service gets at once, and the queue before it.
type Limits = throttle.Config

// Search looks for a better Concurrency.
type Search = throttle.Search

// Load is the load at a moment.
type Load = throttle.Load

// Clock is the time of a stage.
type Clock = guard.Clock

// WithClass returns a context with a class, for the requests that the work of the context sends.
func WithClass(ctx context.Context, c Class) context.Context { return throttle.WithClass(ctx, c) }
