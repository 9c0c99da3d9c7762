// Package heed lets a pacer heed what its provider answers. It is what pace/httppace and
// pace/grpcpace are made of, for those who call in another way:
//
//	heard := heed.New(pacer)
//	...
//	if err := pacer.Acquire(ctx, time.Second); err != nil {
//		return err
//	}
//	sent := time.Now()
//	resp, err := call()
//	heard.Hear(feedback.HTTP(resp.StatusCode, resp.Header, time.Now()), sent)
//
// Package [github.com/headgate/headgate/pace/feedback] says what an answer asks and how
// fast to go on; a Listener tells the pacer, and tells it again when it may go faster.
// That nothing remains is heeded when it is a surprise: when fewer calls are made than
// the pacer lets go, so that others must have used it. While the pacer holds calls back,
// it is what keeping to a limit looks like; if the limit is too large, refusals say so.
//
// A pacer decides what may go in a window when it begins. So a stop lasts until the
// first window that begins after it.
//
// When the pacer's source is a [pace.Braker], the whole fleet slows down.
package heed
