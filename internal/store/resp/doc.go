// Package resp checks the replies on a connection to Redis before the client library reads
// them. A malformed, oversized or unexpected reply ends the connection with an error that
// wraps ErrReply.
//
// The client library trusts its server. A negative length, an unexpected reply, or an error
// "MOVED" without an address panics in a goroutine of the library. The library also
// allocates an announced length before the bytes arrive. So a replaced server, a proxy that
// loses its place in the stream, or an attacker on the network could stop the process.
//
// # What is checked
//
// A Checker sees both directions. From the sent commands it knows the number and the kinds of
// the expected replies. Each reply must be framed exactly as RESP2 or RESP3 says, with CRLF
// at each end. It must keep the bounds of its kind: total bytes, bytes of one string or line,
// total elements, and depth. Streamed replies, attributes and blob errors are refused: Redis
// does not send them. Push messages are accepted only after a subscription, which only
// connections to sentinels have. The Checker keeps about 300 bytes, copies no payload and
// allocates nothing for a reply.
//
// The Checker does not judge the meaning of a reply: the reader of the reply does. It makes an
// exception for replies that make the client library panic: a ROLE without elements, the
// address of a master that is not a pair, redirections without an address, and events of
// sentinels with too few words.
package resp
