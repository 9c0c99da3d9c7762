// Package redis keeps counters in Redis, so that many processes share one limit.
//
// It is a spike: the proof that the contract of headgate.Store, which was first
// met in memory, holds in a second world. It passes store/storetest, and what it
// does is done in earnest; it is not finished.
//
// # What is there
//
//   - token_bucket and sliding_log, exact, on one Redis server (tested with 7.0).
//   - One script call decides a group of Ops: all of them, or none. The groups of
//     one Apply travel in one pipeline, and those of concurrent calls together.
//   - The server's clock decides, in whole microseconds. Callers' clocks are never read.
//   - A key's name is a digest: nothing that a client sends names a key. Every key
//     has a time to live.
//   - Return is idempotent, whichever process returns. Forget voids the receipts of
//     what it drops.
//
// # What is not there
//
//   - leaky_bucket, fixed_window, sliding_window and bans: Prepare refuses them.
//   - Cluster and Sentinel: New refuses a cluster's client.
//   - Group commit, and taking tokens ahead (prefetch).
//   - Failover: what the replica of a failed master has not seen is counted anew,
//     and there is no circuit breaker in front of a server that is away.
//   - The server must not evict: set maxmemory-policy noeviction. A state that it
//     evicts starts anew.
//
// # Bounds
//
// Lua's numbers are exact below 2^53. A bucket fits when Burst, and the units that
// MaxWait covers, times den stay below 2^52; the interval Per/Count is num/den
// microseconds in lowest terms. So every rate of up to
// 2,000,000 per any period fits with Burst at Count, and 100,000,000 a second does.
// A log keeps up to 32,768 units. Prepare names the nearest limit that fits.
//
// docs/decisions/0003-contract-against-redis.md says what the spike has shown,
// and what the store that follows it has yet to solve.
package redis
