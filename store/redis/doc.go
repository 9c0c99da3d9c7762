// Package redis keeps counters in Redis, so that many processes share one limit:
// one server, a Redis Cluster, or a master that sentinels watch. Valkey speaks the
// same protocol.
//
// All five algorithms and bans are decided by one Lua script, at one time, by the
// server's clock in whole microseconds: callers' clocks are never read. Package script
// holds the script and says what fits; limits that do not are refused by Prepare.
// While its server answers, a limit never admits one request more than it says.
//
// # Group commit
//
// A decision that comes alone goes at once, sent by its caller. Those that come while
// two calls are on their way to a node wait, and travel together as one script call,
// which costs the server a third of what so many calls would. On a cluster of
// Redis 7 one call decides what waits for a master, whatever the hash slots. It reads all states
// before it writes any: a slot that has left, or is on its way, ends the call with nothing
// counted, and its decisions go by slots for a second. Before Redis 7, and on Valkey, a call holds
// keys of one hash slot; Config.Slots then trades how many decisions share a call for how evenly nodes are used.
//
// # Groups over several keys
//
// One script decides a group on one server, whatever its keys. On a cluster no script
// reaches several slots: such a group is decided in parts, at the same time, and what
// passing parts took is given back when another refuses. In between others may
// find less than there is, never more. Package compensate does this.
//
// # Failure
//
// No decision waits beyond its context's deadline. A call that was sent and not
// answered may have been counted, and is spent: nothing is sent twice, but for a script that the
// server did not know, and for a key that is on its way to another node; in both the
// server says that it has not run. Each node has a circuit breaker: after some failures in a
// row its decisions fail at once with headgate.ErrUnavailable, and now and then one
// of them is let through, to see. What a caller does then is his fallback.
//
// Replies are checked before the client library reads them (package resp): one that is
// malformed, too large or not awaited is an error, and ends its connection.
//
// A replica that takes over may lack its master's last writes, since Redis
// replicates after it has answered: what was counted there is forgotten.
// docs/stores.md bounds that, and lists the commands and the rights that are needed.
// The server must not evict: maxmemory-policy noeviction.
package redis
