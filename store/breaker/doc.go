// Package breaker keeps callers from a store that does not answer.
//
// A Breaker is closed while its store answers, and every call may go. After a
// number of failures in a row it opens: calls are refused at once, for the rule's
// fallback to decide, and nobody waits for a timeout. From then on one call at a
// time may go to see whether the store is back: the probe. A probe that succeeds
// closes the breaker, one that fails doubles the wait for the next, up to a bound,
// and one that never reports is taken for failed when its lease ends.
//
// A Breaker is a state machine and no more: it reads no clock, starts no goroutine
// and does no I/O. Time is an argument: the monotonic time since any origin, the
// same for all calls of one Breaker.
//
// # Which results count
//
// A result is told together with the time its call began at, as given to Allow.
//
//   - Closed: results of calls that began before it closed last are passed over:
//     timeouts of the outage that is over do not open it again.
//   - Open: a success closes it if its call began after the opening, whether it is
//     of the probe in flight, of one whose lease has ended, or of a call that crossed
//     with the opening. Successes of earlier calls do not: they speak of the store as it was.
//   - Open: a failure counts if it is the probe's. Others say nothing new.
package breaker
