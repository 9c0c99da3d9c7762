// Package breaker keeps callers from a store that does not answer.
//
// A Breaker is closed while its store answers: every call may go. A number of failures in a
// row opens it. An open Breaker refuses calls at once, so the rule's fallback decides and no
// request waits for a timeout. From then on, one call at a time may go, to find out whether
// the store answers again: the probe. A successful probe closes the Breaker. A failed probe
// doubles the wait for the next, up to a bound. A probe without a result counts as failed
// when its lease ends.
//
// A Breaker is a pure state machine. It reads no clock, starts no goroutine and does no
// I/O. Time is an argument: the monotonic time since any origin, the same origin for all
// calls of one Breaker.
//
// # Which results count
//
// A result is reported with the time at which its call began, as given to Allow.
//
//   - Closed: results of calls that began before the last closing are ignored. Timeouts of
//     a past outage do not open the Breaker again.
//   - Open: a success closes the Breaker if its call began after the opening. The call may
//     be the probe, a probe with an ended lease, or a call that began while the Breaker
//     opened. A success of an earlier call is ignored: it describes an earlier state of the
//     store.
//   - Open: a failure counts if the call is the probe. Other failures are ignored.
package breaker
