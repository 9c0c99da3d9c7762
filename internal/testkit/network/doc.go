// Package network puts links between clients and servers on loopback, and makes the links fail.
// A Link is a TCP proxy that can be cut, delay bytes, reset its connections, or stop
// forwarding without an error.
//
// A fault applies to open and to new connections, until Heal or another fault of the same kind.
// Different kinds of faults add up. As with TCP, bytes are never lost, changed or reordered. A
// link that stops forwarding keeps the bytes and delivers them after Heal.
//
// The library toxiproxy 2.5.0 does not fit: it cannot reset an open connection, its removal of a
// latency blocks while a client does not read, and it needs seven modules.
package network
