// Package meta is a small client of one Memcached server. It speaks the meta text
// protocol (mg, ms, ma, md, mn) and stats, as Memcached 1.6 does, over a few
// connections that all callers share.
//
// Requests of callers who come at the same moment travel in one write, and answers
// come back in the order of the requests. Every request carries a number of its own
// (the protocol's opaque), so that an answer that is not the one expected ends the
// connection and reaches nobody.
//
// A failure says whether the server may have done what was asked: see Fault. The
// client sends nothing twice.
//
// Everything is bounded: the requests that wait, the bytes that wait, the length of
// a line, a value and an answer, and the time that a silent connection is kept.
package meta
