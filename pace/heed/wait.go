package heed

import (
	"context"
	"time"

	"github.com/headgate/headgate/pace"
)

// DefaultMaxWait is how long a call without a deadline waits for its permits when
// nothing else is said. A provider whose limit is 0 would let it wait for ever, and nobody
// would know.
const DefaultMaxWait = time.Minute

// MaxWait gives how long a call may wait: what is configured, and if that is 0, until its
// deadline, or for DefaultMaxWait when it has none. A deadline that is nearer is the
// pacer's to keep.
func MaxWait(ctx context.Context, configured time.Duration) time.Duration {
	if configured != 0 {
		return configured
	}
	if _, ok := ctx.Deadline(); ok {
		return pace.Forever
	}
	return DefaultMaxWait
}
