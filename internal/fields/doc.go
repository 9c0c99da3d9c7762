// Package fields tells HTTP callers what a guard decided: with the RateLimit fields,
// Retry-After, the warning of a soft limit, and a sentence for people.
//
//	Style.Announce   RateLimit-Policy and RateLimit, or an older form, into a header
//	AppendPolicy     one item of RateLimit-Policy, for other protocols' metadata
//	AppendRateLimit  one item of RateLimit
//	Delay            how long the client of a refused request should wait, within the bound of the guard
//	Spread           the wait if no time is known
//	Discourages      whether a refusal has X-Should-Retry: false
//	RetryAfter       the exact whole seconds, in texts
//	Seconds          the rounding of every time in whole seconds
//	Warning          the value of Headgate-Warning
//	Pushback         the milliseconds of grpc-retry-pushback-ms
//	Detail           what happened and what to do, in a sentence
//	StreamDetector   tells the stages of a request that its answer begins, and that it is a stream
//
// The middleware for net/http and gRPC and the proxy all use this package, so that callers
// get the same values from each. All functions but Spread and Delay are pure functions of an answer. All are safe
// for concurrent use; Reported and StreamDetector belong to one request.
package fields
