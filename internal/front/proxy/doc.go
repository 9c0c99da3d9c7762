// Package proxy is the front of headgate proxy: a reverse proxy before one
// upstream, for HTTP/1.1 and HTTP/2, with TLS and without. It asks a guard about
// each request and forwards, delays or refuses it.
//
// A request passes Server (its id, its line in the access log), Proxy (its rules)
// and Upstream (the way to the service: http, https, h2c for gRPC, a unix socket).
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
// fields and without Forwarded. To what a trusted peer says in X-Forwarded-For its
// address is added, and its X-Forwarded-Host and -Proto are kept. Of anybody else
// these fields are written anew: they say what this proxy saw, and nothing that a
// client claims. The same goes for the request's id.
//
// A client may go on in another protocol (WebSocket and the like) when the upstream
// agrees, but in none that carries requests: no rule would see them.
//
// # What a client sees
//
// The upstream's answer, or a refusal. An upstream that fails is 502 or 504 and
// counts apart. A body that stands still is 408. What is no HTTP, and fields above
// the bound (431), net/http answers: no rule sees it, and no line of the log.
//
// # What a client may take
//
// Each request has a place until its last byte is written (places.go, inflight.go), and
// each write to a client ends in time (client.go). net/http's server of HTTP/2 has no
// bound for its last flush, and for what it queues while its socket is not read: the
// deadline of a stream, set when the handler ends, and a connection that reads no further
// than 8 KiB ahead of a write bound both.
//
// # How it ends
//
// Server.Drain takes no further connection, serves open ones for a moment and tells
// their clients to open others, waits for what is under way, and breaks off what
// takes too long.
package proxy
