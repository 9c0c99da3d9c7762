// Package proxy is the front of headgate proxy: a reverse proxy before one
// upstream, for HTTP/1.1 and, without TLS, HTTP/2. It asks a guard about each
// request and forwards, delays or refuses it.
//
// What a request is to the rules, what the upstream learns of a decision, and what
// a client is told are those of middleware/httplimit, which this package is built
// upon: the path that rules match is the path that the upstream is sent. What is
// different, a proxy has to do:
//
//   - CONNECT is answered with 405: this is a gateway to one service.
//   - The fields of the closest policy are added when the upstream has answered:
//     its lists are added to, its numbers stand, and informational answers pass as
//     they come.
//
// # What the upstream sees
//
// The request, with the client's Host and query as they came, without hop-by-hop
// fields and without Forwarded. X-Forwarded-For, -Host and -Proto are written
// anew: they say what this proxy saw, and nothing that a client claims.
//
// # What a client sees
//
// The upstream's answer, or a refusal. An upstream that fails is 502 or 504 and
// counts apart.
package proxy
