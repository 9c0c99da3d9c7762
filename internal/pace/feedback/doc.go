// Package feedback computes from a provider's answers how fast its callers may continue.
// The package is pure: time is an argument.
//
//	HTTP       returns the advice of an HTTP response
//	Metadata   returns the advice of a gRPC call's metadata
//	RefusedFor returns the advice of a refusal that names its time in another way
//	Slower     combines the advice of many answers into one brake
//
// # Recognized fields
//
// A refusal is a 429, or a 503 with Retry-After. It stops the calls until the time of
// Retry-After, or else of the RateLimit fields. A refusal without a time stops the calls
// with exponential backoff. RateLimit fields also stop the calls when no units remain,
// until the reset. These forms are recognized:
//
//	RateLimit: "name";r=0;t=30                       the IETF draft; several items
//	RateLimit: limit=10, remaining=0, reset=30       its form of 2023
//	RateLimit-Remaining: 0, RateLimit-Reset: 30      its forms before that
//	X-RateLimit-Remaining: 0, X-RateLimit-Reset: 30  or a date
//
// Some providers send a time since 1970 where the field has a delay. In each field, a number
// above a year is such a time, in seconds or milliseconds. If it is more than a minute ago or
// more than [Longest] ahead, the field is ignored, and the advice is Implausible. The same
// holds for a delay above [Longest] in X-RateLimit-Reset, which some providers send in
// milliseconds. The other fields then decide, and for a refusal the backoff.
//
// The fields of an answer from a cache (one with an Age) are outdated and are ignored.
// Headgate-Warning: soft-limit slows the calls down.
//
// A malformed field is ignored completely. Values are not trusted: the parsed bytes and
// items are bounded, and no advice lasts longer than [Longest].
//
// # Rate of the calls
//
// [Slower] keeps a level, the percentage of the limit that calls may use. It lowers the
// level multiplicatively and raises it additively, as TCP does. With this method,
// independent callers of one limit converge to nearly equal parts of the limit.
//
//   - A refusal or a warning lowers the level to [Decrease] percent of its value, but not
//     below [Floor] percent of the limit. The floor keeps calls going when a provider always
//     warns. Answers to calls from before the last decrease do not lower the level again.
//     Warnings lower the level at most once a second and once a window, so that the provider
//     can see the effect first.
//
//   - After each recovery interval without a refusal or a warning, the level rises by
//     [Increase] percent of the limit. The interval is two windows of the pacer, but at
//     least 5 s and at most 10 min.
//
//   - When no units remain, calls stop and the level stays. A stop of up to one second is
//     ignored. The last call of each second gets such an answer even at the right rate, and
//     its time is rounded up. To follow the answer would halve the calls.
//
// Consider a provider that accepts L percent of the pacer's limit and refuses the rest. The
// level then moves between 0.8 L and L+5. The callers use nine tenths of the accepted
// amount, less the cost of the stops. With windows of a second, there is one refusal in 5 s
// for L = 15, in 12 s for L = 50 and in 20 s for L = 95. The way from full speed to the
// floor takes ten refusals, and the way back takes 18 recovery intervals.
//
// Headgate's own middleware demands stops of a second. With it and L = 50, callers use 65
// to 95 % of the accepted amount, and 0.1 to 0.3 % of the calls are refused. Up to 1.5 %
// are refused if callers wait for each window and then send together. Correct the limit of
// the pacer in such a case: the feedback only bridges the time until then.
//
// A pacer decides the units of a window when the window begins. Therefore a brake that would
// end at the edge of a window, or just before the edge, ends 20 ms before the edge.
//
// This package does not spread the calls after a stop. The pacers of a fleet do not send
// all calls at once, because windows and smoothing limit their permits. Only the backoff
// for refusals without a time has jitter, because each instance computes its own backoff.
package feedback
