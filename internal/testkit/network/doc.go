// Package network puts links between a client and a server on loopback, and makes
// them fail: a Link is a TCP proxy that can be cut, can be slow, can reset its
// connections, and can go silent while all seems well.
//
// A fault holds for connections that are open and for those to come, until Heal or
// another fault of the same kind; faults of several kinds add up. Bytes are never
// lost, changed or put in another order: TCP would not do that either. What a
// silent link has taken in it delivers when it is healed, as TCP does when it
// sends again what was lost.
//
// The toxiproxy library, version 2.5.0, was tried first: it cannot reset a connection
// that is open, taking a latency away waits for a client that does not read, and it
// brings seven modules.
package network
