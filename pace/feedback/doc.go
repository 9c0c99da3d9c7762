// Package feedback tells what a provider's answer asks of those who call it, and how
// fast they may go on. It is pure: time is an argument.
//
//	HTTP       what an answer of HTTP asks
//	Metadata   what the metadata of a gRPC call asks
//	RefusedFor what a refusal asks that said its time in another way
//	Slower     from the advice of many answers, how much of the limit may go, and until when
//
// # What is heard
//
// A refusal (429, and 503 when it says when to come again) stops until the time of
// Retry-After, else until that of the RateLimit fields. One that says no time stops
// with exponential backoff. RateLimit fields that say that nothing remains stop until
// there is more; these forms are known:
//
//	RateLimit: "name";r=0;t=30                       the IETF draft; several items
//	RateLimit: limit=10, remaining=0, reset=30       its form of 2023
//	RateLimit-Remaining: 0, RateLimit-Reset: 30      its forms before that
//	X-RateLimit-Remaining: 0, X-RateLimit-Reset: 30  or the time as seconds or milliseconds since 1970
//
// The fields of an answer that comes from a cache (Age) speak of another time and are
// not heard. Headgate-Warning: soft-limit slows down.
//
// A field that is malformed is ignored, as a whole. Values come from outside: what is
// read is bounded in bytes and items, and no advice lasts longer than [Longest].
//
// # How fast to go on
//
// [Slower] lowers multiplicatively and raises additively, as TCP does, since that is
// what makes many who share a limit, and do not know of each other, come near to equal
// parts of it:
//
//   - A refusal and a warning lower what may go to [Decrease] percent of what it was,
//     but never below [Floor] percent of the limit: who warns always is not obeyed to
//     a standstill. What was sent before that does not lower it again. Warnings lower
//     at most once a second and once a window: the provider has to see the effect first.
//
//   - When nothing was heard for a hold (two windows of the pacer, from 5 s to 10 min),
//     it is raised by [Increase] percent of the limit, and so on each hold.
//
//   - That nothing remains stops, and lowers nothing. For a second it does not stop: so
//     the last call of each second is told, even when all keep to the limit, and since
//     seconds are rounded up, to obey would halve what may go.
//
// Where a provider bears L percent of the pacer's limit and refuses what is more, the
// level moves between 0.8 L and L+5. Nine tenths of what is borne are used, less what
// the stops cost, and with windows of a second something is refused once in 5 s for an
// L of 15, once in 12 s for 50 and once in 20 s for 95. It takes ten refusals from full
// speed to the floor, and 18 holds back. Against our own middleware, which asks for stops
// of a second, 65 to 95 % are used for an L of 50, and 0.1 to 0.3 % of the calls are
// refused, or up to 1.5 % when callers wait for each window and go all at once.
// The remedy is the right limit; this keeps the peace until somebody has set it.
//
// A pacer decides what may go in a window when the window begins. So a brake that
// would end at the edge of a window, or just before it, ends 20 ms before the edge.
//
// Nothing here spreads those who come back when a stop is over. A fleet does not come
// back in one instant because its pacers give their permits by windows and smoothing;
// only the backoff of refusals without a time is jittered, since each instance chooses
// its own.
package feedback
