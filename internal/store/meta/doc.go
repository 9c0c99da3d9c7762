// Package meta is a small client of one Memcached server. It speaks the meta text protocol (mg, ms,
// ma, md, mn) and stats of Memcached 1.6, over a few connections that all callers share.
//
// Requests of simultaneous callers share one write, and answers come in the order of the requests.
// Every request has its own number (the protocol's opaque). An answer with another number ends the
// connection and reaches no caller.
//
// A failure says whether the server may have done the request: see Fault. The client sends no
// request twice.
//
// All buffers are bounded: the waiting requests and bytes, the length of a line, of a value and of
// an answer. A silent connection is closed after a time.
package meta
