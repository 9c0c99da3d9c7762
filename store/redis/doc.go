// Package redis keeps counters in Redis, so that many processes share one limit. The server is one
// Redis, a Redis Cluster, or a master with sentinels. Valkey speaks the same protocol.
//
// One Lua script decides all five algorithms and bans. The script uses the server's clock in whole
// microseconds, and never a caller's clock. Package script has the script, and
// describes the supported policies; Prepare refuses other policies. While its server answers, a limit
// never admits too many units.
//
// # Group commit
//
// The caller of a single decision sends it at once. While two calls to a node are in flight, further
// decisions wait, and then share one script call. A shared call costs the server a third of separate
// calls. On a cluster of Redis 7, one call decides all waiting decisions of a master, across
// hash slots. The script reads all states before it writes any. If a slot has moved or is moving,
// the call counts nothing, and the decisions of that slot go in separate calls for a second.
// Before Redis 7, and on Valkey, a call has keys of one hash slot. With fewer Config.Slots, more
// decisions share a call, and the nodes are used less evenly.
//
// # Groups over several keys
//
// On one server, one script decides a group with any keys. On a cluster, a script cannot decide a
// group with keys in several slots. The store decides the slots of such a group in separate calls
// at the same time. If one slot refuses, the store returns the units of the others. Until then, a
// concurrent request may see fewer free units than there are, and never more. Package compensate
// combines the decisions.
//
// # Failure
//
// No decision waits beyond the deadline of its context. A call without an answer may have been
// counted, and counts as used. The store repeats a call in two cases only: the server did not know
// the script, or a key is moving to another node. In both cases the server says that it has not
// run the call.
//
// Each node has a circuit breaker. After several failures in a row, decisions on that node fail at
// once with headgate.ErrUnavailable, and the breaker lets a probe through from time to time. The
// caller then uses its fallback.
//
// Package resp checks replies before the client library reads them. A malformed, oversized or
// unexpected reply is an error, and ends its connection.
//
// A replica that becomes master may lack the last writes of the former master, because Redis
// answers before it replicates. The missing counts are lost. docs/stores.md bounds the loss, and
// lists the required commands and rights. The server must not evict keys: use maxmemory-policy
// noeviction.
package redis
