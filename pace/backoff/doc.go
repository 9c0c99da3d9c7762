// Package backoff slows a pacer down when its provider refuses calls. pace/httppace and
// pace/grpcpace use it. Programs with other protocols can use it directly:
//
//	listener := backoff.New(pacer)
//	...
//	if err := pacer.Acquire(ctx, time.Second); err != nil {
//		return err
//	}
//	sent := time.Now()
//	resp, err := call()
//	listener.Hear(feedback.HTTP(resp.StatusCode, resp.Header, time.Now()), sent)
//
// Package [github.com/headgate/headgate/pace/feedback] reads an answer, and computes the speed. A
// Listener brakes the pacer, and lifts the brake step by step. An answer that nothing remains
// counts only if it is unexpected: the pacer allows more calls than are made, so other callers must
// have used the limit. While the pacer holds calls back, such answers are normal. If the configured
// limit is too high, refusals say so.
//
// A pacer sets the units of a window when the window begins. So a stop lasts until the first window
// that begins after the stop.
//
// When the pacer's source is a [pace.Braker], the whole fleet slows down.
package backoff
