// Package httplimit is the middleware for net/http: it asks a guard about each
// request and lets it pass, lets it wait, marks it or refuses it.
//
//	limited := httplimit.New(g, httplimit.Options{})
//	err := http.ListenAndServe(":8080", limited(mux))
//
// New gives a func(http.Handler) http.Handler, which http.ServeMux, chi, gorilla/mux,
// connect and echo (by echo.WrapMiddleware) take. It hands on the ResponseWriter that
// it was given, so that flushing, hijacking and sending files work as without it.
//
// # Beside a router
//
// A router chooses the handler by the path as sent; rules match the resolved path. A
// path that has to be resolved is answered with 400, so that New's middleware may
// stand anywhere: around the router, as a middleware of the router, around one
// handler. Options.ResolvePath resolves such a path instead. ResolvePath is safe around
// the whole router and with Use at the root of chi, and nowhere else: a client evades
// the rules with "/admin/../x" in gin, echo (Pre too), gorilla/mux and routes of chi,
// and with "/admin/%2e%2e/x" around a handler of http.ServeMux. docs/middleware.md has
// the whole table, and an adapter for gin.
//
// # Sharing a capacity
//
// A service that can take so much, and no more, is shared among its clients in as few
// lines, without a store and without a list of them:
//
//	share, err := guard.NewFairShare(2000, "header:X-Client-Id") // units a second
//	g, err := guard.New(guard.Config{FairShare: share})
//	err = http.ListenAndServe(":8080", httplimit.New(g, httplimit.Options{})(mux))
//
// Who asks for more than its share, and than what others leave, is refused; the others
// do not notice. Rules may stand beside it. See package fairshare for what a share is.
//
// # What a request is to the rules
//
// Rules see a request as the next handler will see it:
//
//   - The path is decoded once. An escaped slash counts as a slash and is passed on
//     as it came. No path is "/".
//   - A path with empty segments, "." or ".." ("%2e" is a dot) is answered with 400.
//     With Options.ResolvePath it is resolved, and the next handler gets the resolved
//     path: "//v1/x/../y" is matched as "/v1/y" and passed on as "/v1/y".
//   - A path that services read in different ways is answered with 400: one with a
//     backslash or a control character, with a segment such as "..;x", or with an
//     escaped slash beside segments that have to be resolved.
//   - The host is in lower case, without port and without a dot at its end. A host
//     that servers read in different ways is answered with 400 where a rule looks at
//     the host: "www.example.com:80:x", a name that is not ASCII.
//   - The first value of a header or a cookie counts. A header's is without the blanks
//     around it, which HTTP/2 brings. A cookie is found by its name in any case, and
//     its value is without quotes and with %XX decoded.
//   - The address is the peer's; the guard's rule.Identity says who may name
//     another one. The subject is that of a client certificate that TLS verified.
//
// # What the next handler sees
//
// The request, with the path that the rules matched. A request above a soft limit carries
// Headgate-Warning, and one that a rule degrades the header that the rule names.
// What a client itself sends under these names is removed, always, and so is what
// services by CGI's rules take for the same: X_Level for X-Level. What another guard
// of this process has set stays, in front of what this one adds.
//
// A request that differs is a copy. What the next handler parses of the copy (Form,
// PostForm, MultipartForm) and its Pattern are given back to the request that came:
// net/http removes uploaded files, and a handler outside sees the pattern.
//
// # What a client sees
//
// The answer with the RateLimit fields of the closest policy, or a refusal: its
// rule's status (429 by default), Retry-After and a problem document (RFC 9457). A
// share is a policy of the name fair_share. Who is over it is told when the next cycle
// begins, and a little more, so that not all come at once; who names no client
// (anonymous_client) is told no time, since none mends it.
// Refusals for want of a place to count in, or of an answer from the store, are
// 503: they are no fault of the client's. A rule that redirects sends its Location
// too. A stated cost that cannot be counted is 400.
//
// A refused call of gRPC gets a status of gRPC under 200, as a server with
// middleware/grpclimit gives it: RESOURCE_EXHAUSTED, or UNAVAILABLE in place of
// 503, with the details that programs read, and with grpc-retry-pushback-ms for the
// retry policies of clients: the milliseconds until the call can pass, or -1 (do not
// retry) where no time mends it or it takes more than a minute.
//
// A refused call of Connect (a stream, a POST with Connect-Protocol-Version, a GET with
// connect=v1) gets an error of Connect: resource_exhausted under 429, or unavailable
// under 503, with the same details; a stream gets the message that ends it, under 200.
//
// A call that is answered with 400 for another protocol (its path, its host, a field or
// its cost) gets INVALID_ARGUMENT under 200 by gRPC. By Connect it gets invalid_argument
// under 400, and a stream under 200. What net/http itself refuses before any handler stays
// a plain 400 or 431.
//
// # For a front of its own
//
// Exchange is what New is made of, step by step, for a program that writes its
// answers in a way of its own, as the proxy of Headgate does.
package httplimit
