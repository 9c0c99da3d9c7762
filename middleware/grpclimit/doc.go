// Package grpclimit limits the calls of a gRPC server. A guard decides each call.
//
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(grpclimit.Unary(g, grpclimit.Options{})),
//		grpc.ChainStreamInterceptor(grpclimit.Stream(g, grpclimit.Options{})),
//	)
//
// A guard can share the capacity of the service among its clients (guard.NewFairShare),
// with or without rules. The metadata, certificate or token of a call names its client.
//
// # What rules see
//
// Rules see a call as a request. The path is the full method ("/shop.v1.Orders/Place"),
// the method is POST, the host is the client's :authority, and the headers are the incoming
// metadata. Header names in rules ignore case. Rules do not see binary metadata (-bin) or
// cookies. The subject of a client certificate counts if TLS has verified it.
//
// The first value of a metadata name counts, without surrounding blanks. A call ends with
// INVALID_ARGUMENT if a rule reads the host and the :authority is not a valid host name.
//
// A call is decided once, when it starts. Streams are also decided once: messages on an
// open stream cost nothing more. gRPC calls interceptors after a unary call's message has
// arrived. gRPC does not call interceptors for unknown methods.
//
// # What callers see
//
// An allowed call has the closest policy in its header metadata (ratelimit-policy,
// ratelimit), and the warning of a soft limit (headgate-warning). A call with a later turn
// waits for its turn.
//
// A refused call ends with RESOURCE_EXHAUSTED, or with UNAVAILABLE if the store is full or
// unavailable. The status has details:
//
//	RetryInfo     when the same call can pass. The detail is absent if waiting does not
//	              help, as for ANONYMOUS_CLIENT: with fair share a call must name its client.
//	QuotaFailure  the violated policies
//	ErrorInfo     domain "headgate" and the reason, such as OVER_LIMIT. For a rule that
//	              redirects, the metadata field location has the target.
//
// Clients with a retry policy do not read RetryInfo. For them the trailer
// grpc-retry-pushback-ms has the milliseconds until the next attempt. The value is -1 (do
// not retry) if waiting does not help or takes more than a minute.
//
// A call whose deadline is before its turn is refused at once with WAIT_TOO_LONG. A call
// with an invalid cost ends with INVALID_ARGUMENT. Failed calls have the metadata in the
// trailer, because clients never retry a call that has received a header.
//
// # What services see
//
// The incoming metadata of an allowed call has the guard's marks, from rules that degrade
// and from soft limits. Values that clients sent under these names are removed.
//
// # Two guards
//
// A second guard around the same services keeps the first guard's marks and adds its own.
// Fields that are lists have an item from each guard, in no particular order. A field that
// is one number (such as fields.XRateLimit) comes from the first guard. The status
// and its details come from the guard that refuses.
package grpclimit
