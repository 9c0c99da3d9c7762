// Package grpclimit puts a guard in front of the services of a gRPC server.
//
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(grpclimit.Unary(g, grpclimit.Options{})),
//		grpc.ChainStreamInterceptor(grpclimit.Stream(g, grpclimit.Options{})),
//	)
//
// A guard may share the capacity of the service among its clients
// (guard.NewFairShare), with rules or without: a call is of the client that its
// metadata, its certificate or its token names.
//
// # What rules see
//
// A call is a request like any other: its path is the full method
// ("/shop.v1.Orders/Place"), its method POST, its host the :authority that the
// client named, its headers the metadata that came with it, whatever the case in
// which a rule spells a name. Binary metadata (-bin) and cookies are never there.
// The subject of a client certificate counts when TLS has verified it.
//
// The first value of metadata counts, without the blanks around it. A call ends with
// INVALID_ARGUMENT when a rule looks at the host and the :authority is not a host name.
//
// A call is decided once, when it begins, streams too: what a client sends on a
// stream that is open costs nothing more. gRPC asks interceptors when a unary
// call's message has arrived, and does not ask them about methods that the server
// does not have.
//
// # What callers see
//
// A call that passes tells of the closest policy in its header metadata
// (ratelimit-policy, ratelimit), and of a soft limit (headgate-warning). One that
// has a turn ahead waits for it.
//
// A refused call ends with RESOURCE_EXHAUSTED, or with UNAVAILABLE when there is
// no room or no store to count it with, and the status has details:
//
//	RetryInfo     when the same call can pass; never, when there is none, as for
//	              ANONYMOUS_CLIENT: under fair share a call has to name its client
//	QuotaFailure  the policies that were violated
//	ErrorInfo     domain "headgate" and the reason, as in OVER_LIMIT; for a rule
//	              that redirects, the metadata location says where to
//
// The trailer grpc-retry-pushback-ms tells clients with a retry policy, which read no
// RetryInfo, after how many milliseconds to try again; -1 (do not retry) where no time
// mends it or it takes more than a minute.
//
// A call whose deadline comes before its turn is refused at once, as
// WAIT_TOO_LONG, and one that states a cost that cannot be counted is answered
// INVALID_ARGUMENT. Calls that fail, here or in the service, have the metadata in
// the trailer: one with a header is one that clients never retry.
//
// # What services see
//
// The incoming metadata of a call that passes has the marks of the guard: of rules
// that degrade, and of soft limits. What clients send under these names is removed.
//
// # Two guards
//
// A second guard around the same services keeps the marks of the first one and adds its
// own. Fields that are lists have an item of each guard, in no order; where a field holds
// one number (fields.XRateLimit, fields.Draft03) that of the first guard stands. The
// status and its details are those of the guard that refuses.
package grpclimit
