// Package proxy implements headgate proxy: a reverse proxy before one upstream, for
// HTTP/1.1 and HTTP/2, with and without TLS. A guard decides each request, and the proxy
// forwards, delays or refuses it.
//
// A request passes Server (its id and its line in the access log), Proxy (its rules)
// and Upstream (the connection to the service: http, https, h2c for gRPC, or a unix
// socket).
//
// Package middleware/httplimit defines how rules see a request, what the upstream learns
// of a decision, and what a client receives. Rules match the same path that the upstream
// receives. The proxy differs in two points:
//
//   - It answers CONNECT with 405, because it is a gateway to one service.
//   - It adds the fields of the closest policy after the upstream has responded. It
//     appends to the upstream's lists, keeps the upstream's numbers, and passes
//     informational responses unchanged.
//
// # Data planes
//
// The fast data plane is the default. The standard data plane serves requests with net/http alone. The fast one adds two parts:
// cmd/internal/http1/server reads requests and writes responses, and cmd/internal/http1/client sends
// requests to the upstream and reads its responses. Server.serve stands between the two parts, with the
// fields of the request in an http1.List. net/http's handler loads its header map into such a list, so that rules, counters and
// logs have the same code on both planes. A fallbackListener (fast.go) gives net/http the connections of requests that the fast
// plane does not serve.
//
// # What the upstream sees
//
// The upstream receives the request with the client's Host and query, without hop-by-hop
// fields and without Forwarded. For a trusted peer, the proxy appends the peer's address
// to X-Forwarded-For and keeps X-Forwarded-Host and X-Forwarded-Proto. For any other peer
// it overwrites these fields with what the proxy itself saw, and removes the other fields in
// which gateways describe their client (gatewayfields.go). It treats the request's id in the
// same way.
//
// A client may upgrade to another protocol, such as WebSocket, if the upstream agrees.
// Protocols that carry further requests are excluded, because no rule would see those
// requests.
//
// # What a client sees
//
// A client receives the upstream's response or a refusal. A failing upstream gives 502 or
// 504, and has its own counter. A body that stops arriving gives 408. net/http itself
// answers bytes that are not HTTP, and fields above the bound (431). No rule sees those
// requests, and the access log has no line for them.
//
// # Bounds for clients
//
// Each request occupies a place until its last byte is written (places.go, inflight.go),
// and each write to a client times out (client.go). net/http's HTTP/2 server does not
// bound its last flush. It also does not bound the data queued for a client that does not
// read. A stream deadline, set when the handler ends, bounds the flush. The limit of 8 KiB
// read during one write bounds the queue.
//
// # Shutdown
//
// Server.Drain stops accepting connections. It serves open connections for a moment and
// asks their clients to reconnect. It then waits for requests in flight, and aborts those
// that take too long.
package proxy
