// Package fields tells callers what a guard decided about them, in the words of
// HTTP: the RateLimit fields, Retry-After, the warning of a soft limit, and a
// sentence for people.
//
//	Style.Announce   RateLimit-Policy and RateLimit, or an older form, into a header
//	AppendPolicy     one item of RateLimit-Policy, for other protocols' metadata
//	AppendRateLimit  one item of RateLimit
//	RetryAfter       the whole seconds of Retry-After
//	Warning          the value of Headgate-Warning
//	Pushback         the milliseconds of grpc-retry-pushback-ms
//	Detail           what happened and what to do, in a sentence
//
// The middleware for net/http and for gRPC, and the proxy, all speak through it,
// so that a caller is told the same whatever it came through. Everything here is
// a pure function of an answer and safe for concurrent use.
package fields
