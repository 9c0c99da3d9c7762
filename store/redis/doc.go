// Package redis keeps counters in Redis, so that many processes share one limit. The server is one
// Redis, a Redis Cluster, or a master with sentinels. Valkey speaks the same protocol.
//
// One Lua script decides all five algorithms and bans. The script uses the server's clock in whole
// microseconds, and never a caller's clock. Package script has the script and its limits; Prepare
// refuses other limits. While its server answers, a limit never admits more than it says.
//
// # Group commit
//
// The caller of a single decision sends it at once. While two calls to a node are in flight, further
// decisions wait, and then share one script call. That costs the server a third of separate
// calls. On a cluster of Redis 7, one call decides all waiting decisions of a master, whatever
// their hash slots. Such a call reads all states before it writes any. When one of the slots has
// moved or is moving, the call ends with nothing counted, and the decisions of that slot go in
// separate calls for a second. Before Redis 7, and on Valkey, a call has keys of one hash slot.
// With fewer Config.Slots, more decisions share a call, and the nodes are used less evenly.
//
// # Groups over several keys
//
// On one server, one script decides a group, whatever its keys. On a cluster, no script reaches
// several slots. Such a group is decided in parts, at the same time. When a part is refused, the
// units of the other parts are returned. Until then, a concurrent request may see fewer free
// units than there are, and never more. Package compensate does this.
//
// # Failure
//
// No decision waits beyond the deadline of its context. A call without an answer may have been
// counted, and counts as used. A call is repeated in two cases only, and the server says in both
// that it has not run the call: a script that the server did not know, and a key that is moving
// to another node.
//
// Each node has a circuit breaker. After several failures in a row, decisions on that node fail at
// once with headgate.ErrUnavailable, and a probe goes through from time to time. The caller then
// uses its fallback.
//
// Package resp checks replies before the client library reads them. A malformed, oversized or
// unexpected reply is an error, and ends its connection.
//
// A replica that becomes master may lack the last writes of the former master, because Redis
// replicates after it has answered. Those counts are lost. docs/stores.md bounds the loss, and
// lists the required commands and rights. The server must not evict keys: use maxmemory-policy
// noeviction.
package redis
