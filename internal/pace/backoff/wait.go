package backoff

import (
	"context"
	"time"

	"github.com/headgate/headgate/pace"
)

// DefaultMaxWait bounds the wait of a call without a deadline. Without a bound, a provider with a
// limit of 0 would make the call wait for ever.
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
