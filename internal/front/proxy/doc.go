// Package proxy is the front of headgate proxy: a reverse proxy before one
// upstream, for HTTP/1.1 and, without TLS, HTTP/2. It asks a guard about each
// request and forwards, delays or refuses it.
//
// # What a request is to the rules
//
// Rules see a request as the upstream will see it:
//
//   - The path is decoded once. Empty segments, "." and ".." are resolved, "%2e"
//     like a plain dot, and the upstream is sent the resolved path: "//v1/x/../y"
//     is matched as "/v1/y" and forwarded as "/v1/y". An escaped slash counts as a
//     slash and is forwarded as it came.
//   - A path that services read in different ways is answered with 400: one with a
//     backslash or a control character, with a segment such as "..;x", or with an
//     escaped slash beside segments that have to be resolved.
//   - The host is in lower case, without port and without a dot at its end.
//   - The first value of a header or a cookie counts. Quotes around a cookie's
//     value are dropped.
//   - The address is the peer's. What a client says in X-Forwarded-For is not
//     believed.
//
// # What the upstream sees
//
// The request, with the client's Host and query as they came, without hop-by-hop
// fields and without Forwarded. X-Forwarded-For, -Host and -Proto are written
// anew: they say what this proxy saw, and nothing that a client claims.
//
// # What a client sees
//
// The upstream's answer with the RateLimit fields of the closest policy, or a
// refusal with Retry-After and a problem document (RFC 9457). Refusals over a
// quota have the status of their rule, 429 by default; those for want of a place
// to count in, or of an answer from the store, are 503: they are no fault of the
// client's. An upstream that fails is 502 or 504 and counts apart.
package proxy
