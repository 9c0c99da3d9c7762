// Package server serves HTTP/1.1 requests that are written in a strict subset, at a third of
// the cost of net/http. It calls the same http.Handler with the same http.Request, and
// answers with the same bytes. Only the time until it notices a disconnected client differs.
//
// A request outside the subset (see http1.ParseRequest) is not answered here. A Fallback,
// which is a server of net/http, gets its bytes. If the end of the request is known, the
// Fallback gets the connection for this one request, and returns it after the answer.
// Otherwise it keeps the connection.
//
// One goroutine serves a connection, and then the next (workers.go). An idle connection has no buffer: the goroutine waits
// until the connection is readable, and then takes a transaction from a pool. The transaction
// has the buffers and the http.Request. One more goroutine checks for clients that disconnect
// while their request is in progress (disconnects.go). A connection that is an http1.Ahead has a goroutine while a request takes long.
//
// # Ownership
//
// A transaction and all that it refers to belong to the handler until it returns. A handler must
// not keep the header or the body of a request longer. It may keep the context.
package server
