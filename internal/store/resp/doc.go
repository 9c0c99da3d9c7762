// Package resp checks what travels on a connection to Redis, before the client
// library reads it. A reply that is malformed, too large, or not awaited ends the
// connection with an error that wraps ErrReply.
//
// The client library trusts its server: a negative length, a reply that no command
// awaits, or an error "MOVED" without an address panics in a goroutine of the library,
// and a length is allocated before its bytes arrive. A server that was replaced, a
// proxy that desynchronizes, or an attacker on the way would stop the process.
//
// # What is checked
//
// A Checker follows both directions. From the commands that are sent it knows how many
// replies are awaited, and of which kind. Each reply must be framed exactly as RESP2 or
// RESP3 says, with CRLF at each end, and must keep the bounds of its kind: bytes in all,
// bytes of one string or line, elements in all, and depth. Streamed replies, attributes
// and blob errors are refused: Redis sends none of them. Push messages are accepted only
// after a subscription, which sentinels alone get. The Checker keeps 300 bytes or so,
// copies no payload and allocates nothing for a reply.
//
// The Checker does not judge what a reply means: the reader of the reply does that. The
// exceptions are replies on which the client library panics: a ROLE without elements, the
// address of a master that is no pair, redirections without an address, and events of
// sentinels with too few words.
package resp
