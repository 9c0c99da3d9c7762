// Package http2 serves HTTP/2 connections to an http.Handler at less than half of the cost of net/http. It answers like
// net/http's server and keeps its bounds. The framer and the decoder of headers are those of golang.org/x/net/http2.
//
// # Goroutines
//
// One goroutine reads a connection. Handlers run on a pool of workers, whose stacks stay grown between requests. No goroutine
// writes for the connection alone: frames are appended to a buffer, and the goroutine that finds no writer writes the
// buffer once, with the frames of other streams. A worker writes what is added meanwhile. After the settings the reader does
// not write: it could otherwise wait for a client that waits for the reader.
//
// # Bounds
//
// A connection has at most Config.MaxStreams streams, and as many handlers. Four times as many streams may wait for a handler
// after the client has reset others; with more, the connection ends. A response waits while mostQueued bytes are not
// written. Control frames have their own bound, mostControl. Bodies are bounded by the windows of streams and connection,
// beside one buffer for the longest frame that a body keeps while it is empty. Header lists are bounded by Config.MaxHeader.
//
// # Ownership
//
// A stream, with its request's header and its ResponseWriter, belongs to the handler until the handler returns. A handler
// must not keep them longer. The handler may keep the http.Request itself, its context and its body, which are new for each
// request.
package http2
