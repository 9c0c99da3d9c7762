// Package httplimit is the middleware for net/http. A guard decides each request, and the
// middleware passes, delays, marks or refuses it.
//
//	limited := httplimit.New(g, httplimit.Options{})
//	err := http.ListenAndServe(":8080", limited(mux))
//
// New returns a func(http.Handler) http.Handler, which works with http.ServeMux, chi,
// gorilla/mux, connect and echo (with echo.WrapMiddleware). The middleware keeps the
// optional methods of the ResponseWriter, so that flushing, hijacking and sending files
// still work.
//
// # With a router
//
// A router chooses the handler by the path as sent, but rules match the resolved path. The
// middleware answers a path that needs resolving with 400, so that New's middleware is safe
// in any position: around the router, inside it, or around one handler.
// Options.ResolvePath resolves such a path instead. ResolvePath is safe only around the
// whole router, and with Use at the root of chi. In other positions a client can evade the
// rules. "/admin/../x" does so in gin, echo (also with Pre), gorilla/mux and routes of chi,
// and "/admin/%2e%2e/x" around a handler of http.ServeMux. docs/middleware.md has the
// complete table and an adapter for gin.
//
// # Sharing a capacity
//
// A few lines share a limited capacity among clients, without a store and without a list
// of clients:
//
//	share, err := guard.NewFairShare(2000, "header:X-Client-Id") // units a second
//	g, err := guard.New(guard.Config{FairShare: share})
//	err = http.ListenAndServe(":8080", httplimit.New(g, httplimit.Options{})(mux))
//
// Only a client that exceeds both its share and what other clients leave unused is
// refused. Rules can be combined with fair share. See package fairshare for the definition
// of a share.
//
// # How rules see a request
//
// Rules see a request as the next handler will see it:
//
//   - The path is decoded once. An escaped slash counts as a slash and is forwarded
//     unchanged. An empty path is "/".
//   - A path with empty segments, "." or ".." ("%2e" is a dot) gives 400. With
//     Options.ResolvePath it is resolved, and the next handler gets the resolved path:
//     "//v1/x/../y" is matched and forwarded as "/v1/y".
//   - A path that services read in different ways gives 400. Examples are a path with a
//     backslash or a control character, with a segment such as "..;x", or with an escaped
//     slash beside segments that need resolving.
//   - The host is in lower case, without port and without a trailing dot. If a rule reads
//     the host, a host that servers read in different ways gives 400. Examples are
//     "www.example.com:80:x" and a name that is not ASCII.
//   - The first value of a header or cookie counts. Blanks around a header's value, which
//     HTTP/2 can deliver, are removed. Cookie names ignore case, and a cookie's value is
//     without quotes, with %XX decoded and with "+" for a space. A cookie that parsers read
//     in different ways, such as "session=K a1=1", counts as missing.
//   - The address is the peer's. The guard's rule.Identity defines which peers may name
//     another address. The subject comes from a client certificate that TLS verified.
//
// # What the next handler sees
//
// The next handler receives the request with the path that the rules matched. A request
// above a soft limit carries Headgate-Warning. A request that a rule degrades carries the
// header that the rule names. Values that the client sent under these names are always
// removed. Names that CGI treats as equal, such as X_Level for X-Level, are also removed. Values
// from another guard in this process stay, before the values that this guard adds.
//
// A changed request is a copy. The results of parsing the copy (Form, PostForm,
// MultipartForm) and its Pattern are copied back to the original request. net/http can then
// remove uploaded files, and outer handlers see the pattern.
//
// # What a client sees
//
// A client receives the response with the RateLimit fields of the closest policy, or a
// refusal. A refusal has the rule's status (429 by default), Retry-After and a problem
// document (RFC 9457). A share is a policy with the name fair_share. Retry-After for a
// client over its share is the start of the next cycle plus a small random time, so that
// clients do not all return at once. A request that names no client (anonymous_client)
// gets no Retry-After, because waiting does not help. Refusals for a full or unavailable
// store are 503, because the client did not cause them. A rule that redirects also sends
// its Location. A stated cost that is invalid gives 400.
//
// A refused gRPC call gets a gRPC status with HTTP status 200, as from a server with
// middleware/grpclimit. The status is RESOURCE_EXHAUSTED, or UNAVAILABLE in place of 503. The
// status has details that programs read. For the retry policies of clients, the response has
// grpc-retry-pushback-ms: the milliseconds until the call can pass. The value is -1 (do not
// retry) if waiting does not help or takes more than a minute.
//
// A refused Connect call (a stream, a POST with Connect-Protocol-Version, or a GET with
// connect=v1) gets a Connect error with the same details. The error is resource_exhausted
// with status 429, or unavailable with 503. A stream gets an end-of-stream message with
// status 200.
//
// Where another request would get 400 (for its path, host, a field or its cost), a gRPC call
// gets INVALID_ARGUMENT with status 200. A Connect call gets invalid_argument with status
// 400, or 200 for a stream. Requests that net/http itself refuses before any handler still
// get a plain 400 or 431.
//
// # For a custom front end
//
// Exchange has the steps of New's middleware, for a program that writes its own responses,
// as Headgate's proxy does.
package httplimit
