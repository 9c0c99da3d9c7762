package throttle

import (
	"context"
	"time"
)

// The headers with which Headgate's parts state the class and the deadline of a request to each other.
const (
	// FieldCriticality has the name of a Class.
	FieldCriticality = "Headgate-Criticality"
	// FieldTimeout has the milliseconds until the deadline.
	FieldTimeout = "Headgate-Timeout"
)

// classKey is the key of a Class in a context.
type classKey struct{}

// WithClass gives a context with a class, for the requests that the work of the context sends.
func WithClass(ctx context.Context, c Class) context.Context {
	return context.WithValue(ctx, classKey{}, c)
}

// ClassFrom gives the class of a context, and whether there is one.
func ClassFrom(ctx context.Context) (Class, bool) {
	c, ok := ctx.Value(classKey{}).(Class)
	return c, ok && c < classCount
}

// TimeoutFrom gives the value of FieldTimeout for a context at now: the milliseconds until its deadline,
// at least 1. It reports false without a deadline.
func TimeoutFrom(ctx context.Context, now time.Time) (ms int64, ok bool) {
	deadline, ok := ctx.Deadline()
	return max(deadline.Sub(now).Milliseconds(), 1), ok
}
