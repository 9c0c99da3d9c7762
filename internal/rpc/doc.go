// Package rpc serves gRPC services within bounds. Start with New.
//
// The package has the listener, TLS, health and the end of a server. The services come from
// the caller. A call costs what it costs in plain grpc-go: the package has no interceptor and no
// stats handler. What it needs to know, it learns from the bytes of the connections.
//
// # Bounds
//
// A connection must finish its handshakes within HandshakeTimeout. Each connection has at most
// MaxStreams calls. Unfinished requests of all connections have at most MaxReceiving bytes. A
// client that leaves responses unread for WriteTimeout is disconnected. The listener bounds the
// connections. At its bound, a connection that has sent no byte for a second counts as idle.
//
// # End
//
// Drain reports NOT_SERVING, ends the streams that watch the health, and lets the calls in flight
// finish. At its deadline, it closes the connections.
package rpc
