// Package grpcpace keeps the calls of a gRPC client within the limits of those that it
// calls.
//
//	paced, err := grpcpace.New(grpcpace.Config{Methods: map[string]*pace.Pacer{
//		"/mail.v1.Mail/*": mail, // made by pace.New
//	}})
//	conn, err := grpc.NewClient(target,
//		grpc.WithChainUnaryInterceptor(paced.Unary), grpc.WithChainStreamInterceptor(paced.Stream))
//
// # Waiting
//
// A call waits for its permit within its deadline, or for a minute when it has none. One that
// cannot have it in time fails at once, with RESOURCE_EXHAUSTED and a RetryInfo. It is
// not DEADLINE_EXCEEDED: that would leave open whether the server has done what was
// asked, and here it was not sent. errors.As finds the *pace.TimeoutError in it. A call that ends
// while it waits has the code of its context.
//
//	*pace.TimeoutError, pace.ErrTooManyWaiters   RESOURCE_EXHAUSTED
//	pace.ErrTooLarge, ErrNoPacer                 FAILED_PRECONDITION: no time mends it
//	pace.ErrClosed                               UNAVAILABLE
//
// A stream takes one permit when it begins, or, with Config.PerMessage, one for each
// message that is sent.
//
// Calls that gRPC sends again by itself, below its interceptors, are neither paced nor
// counted: with a limit, leave retries to an interceptor in front of this one, and switch those of
// service configs off by grpc.WithDisableRetry.
//
// # Learning
//
// What the server says is heeded (package [github.com/headgate/headgate/pace/feedback] says how):
//
//	RESOURCE_EXHAUSTED or UNAVAILABLE with RetryInfo,   stop until then, and go on more slowly
//	retry-after or grpc-retry-pushback-ms
//	QuotaFailure without a time                         stop with exponential backoff
//	ratelimit: …;r=0;t=30                               stop, if the pacer does not hold calls back
//	headgate-warning: soft-limit                        go on more slowly
//
// RESOURCE_EXHAUSTED alone is not heeded: it is also what a message that is too long
// ends with, which is no reason to stop all others.
package grpcpace
