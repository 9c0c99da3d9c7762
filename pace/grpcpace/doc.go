// Package grpcpace keeps the calls of a gRPC client within the limits of the called services.
//
//	paced, err := grpcpace.New(grpcpace.Config{Methods: map[string]*pace.Pacer{
//		"/mail.v1.Mail/*": mail, // made by pace.New
//	}})
//	conn, err := grpc.NewClient(target,
//		grpc.WithChainUnaryInterceptor(paced.Unary), grpc.WithChainStreamInterceptor(paced.Stream))
//
// # Waiting
//
// A call waits for its permit until its deadline, or for a minute without a deadline. A call that
// cannot get a permit in time fails at once, with RESOURCE_EXHAUSTED and a RetryInfo. The code is
// not DEADLINE_EXCEEDED, because that code leaves open whether the server has run the call, and
// this call was not sent. errors.As finds the *pace.TimeoutError in the error. When the context of
// a waiting call ends, the error has the code of the context.
//
//	*pace.TimeoutError, pace.ErrTooManyWaiters   RESOURCE_EXHAUSTED
//	pace.ErrTooLarge, ErrNoPacer                 FAILED_PRECONDITION: a retry fails too
//	pace.ErrClosed                               UNAVAILABLE
//
// A stream takes one permit when it begins, or, with Config.PerMessage, one for each sent message.
//
// gRPC's own retries happen below its interceptors. They are neither paced nor counted. With a
// limit, use an interceptor in front of this one for retries, and disable those of service configs
// with grpc.WithDisableRetry.
//
// # Learning
//
// The pacer follows the answers of the server (package [github.com/headgate/headgate/internal/pace/feedback]
// says how):
//
//	RESOURCE_EXHAUSTED or UNAVAILABLE with RetryInfo,   stop until then, then continue more slowly
//	retry-after or grpc-retry-pushback-ms
//	QuotaFailure without a time                         stop with exponential backoff
//	ratelimit: …;r=0;t=30                               stop, if the pacer does not hold calls back
//	headgate-warning: soft-limit                        continue more slowly
//
// RESOURCE_EXHAUSTED alone has no effect: a message that is too long ends with this code too, and is no
// reason to stop other calls.
package grpcpace
