// Package rpc serves gRPC services within bounds. Start with New.
//
// The package has the listener, TLS, health and the end of a server. The services come from
// the caller. A call costs what it costs in plain grpc-go: the package has no interceptor and no
// stats handler. What it needs to know, it learns from the bytes of the connections.
//
// # Bounds
//
// A connection must finish its handshakes within HandshakeTimeout. Each connection has at most
// MaxStreams calls. The calls in flight of all connections take at most MaxCallMemory bytes: the
// frames of each connection say how many calls are in flight and what they have sent, and services
// acquire what they need beside it from an Account. A call is in flight until its response is sent.
// The short responses that a stream sends count by a Backlog until its client has read them.
// A client that leaves responses unread for WriteTimeout is disconnected. The listener bounds the
// connections. At its bound, a connection that has sent no byte for a second counts as idle.
//
// # End
//
// Drain reports NOT_SERVING, ends the streams that watch the health, and lets the calls in flight
// finish. At its deadline, it closes the connections.
package rpc
