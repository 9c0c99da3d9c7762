// Package resp serves decisions over the Redis protocol, RESP2 and RESP3: CL.THROTTLE as redis-cell
// documents it, THROTTLE as throttlecrab documents it, and HG.DECIDE by the rules.
// docs/redis-protocol.md describes the commands.
//
// A connection has one goroutine. It decides all commands that one read has brought together: see
// work. A connection without a command has no buffer.
package resp
