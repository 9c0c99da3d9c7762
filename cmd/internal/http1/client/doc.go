// Package client is an HTTP/1.1 client for one service that is reached without TLS. It
// serves the fast path of the proxy.
//
// The goroutine that calls Client.Do writes the request and reads the answer. A request's
// body is written with the head if it has arrived, and else by a goroutine of its own. A plain answer, as http1.List.ParseResponse
// defines it, is read by this package. Every other answer is read by net/http's
// ReadResponse, which gets all bytes from the first on. Therefore such an answer has the
// same meaning as with net/http's Transport.
//
// A connection is used again only after an exchange without any doubt: the request is
// written, the answer is read to its end, no byte follows, and neither side wants to close.
// An idle connection has no goroutine and no buffer. Without a descriptor it has a goroutine, see http1.Ahead.
package client
