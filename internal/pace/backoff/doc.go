// Package backoff slows a pacer down when its provider refuses calls. Packages pace/httppace and
// pace/grpcpace use it. Programs with other protocols can use it directly:
//
//	listener := backoff.New(pacer)
//	...
//	if err := pacer.Acquire(ctx, time.Second); err != nil {
//	return err
//	}
//	sent := time.Now()
//	resp, err := call()
//	listener.Observe(feedback.HTTP(resp.StatusCode, resp.Header, time.Now()), sent)
//
// Package [github.com/headgate/headgate/internal/pace/feedback] reads an answer, and computes the speed.
// A Listener brakes the pacer, and lifts the brake step by step. An answer with a remaining
// count of 0 has an effect only if it is unexpected: the pacer allows more calls than are made,
// so other callers must have used the limit. While the pacer holds calls back, such answers are
// normal. If the configured limit is too high, the provider refuses calls.
//
// A pacer sets the units of a window when the window begins. So a stop lasts until the first
// window that begins after the stop.
//
// When the pacer's source is a [pace.Braker], the whole fleet slows down.
package backoff
