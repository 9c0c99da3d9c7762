// Package adaptive drops outgoing requests to a service that refuses many of them.
//
// The rule is that of Google's book on site reliability engineering, chapter "Handling Overload". In a window of two
// minutes, a caller counts its requests, and those that the service accepted. It drops a request
// with the probability
//
//	max(0, (requests - K x accepts) / (requests + 1)), at most 0.9
//
// Dropped requests count as requests. With K = 2, about as many requests reach a service that
// accepts none of them as one that accepts half. The bound of 0.9 lets a caller notice that the
// service has recovered. Each class (package throttle) is counted alone, so a caller drops the
// classes that the service refuses.
//
// Retries are at most a tenth of the requests, so that they do not keep a service overloaded.
//
// Time and randomness are arguments. Packages pace/httppace and pace/grpcpace use this one.
package adaptive
