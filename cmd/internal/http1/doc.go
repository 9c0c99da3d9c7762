// Package http1 reads the headers of HTTP/1.1 messages that are written in the strictest
// form of RFC 9112. It serves the fast path of the proxy: package server takes requests in
// this form, and package client takes answers in this form. List has the fields of a message. Ahead
// serves connections whose sockets do not tell what the peer does.
//
// The functions do not repair and do not explain. A header in any other form is left to
// net/http, which gets its bytes unchanged. Therefore a mistake here can only be a header
// that is accepted and read differently than net/http would read it. The tests compare both.
package http1
