// Package script has the Lua scripts of the Redis store, and the encoding and decoding of their
// calls. The package is pure: it does no I/O.
//
//	names, err := script.NewNames(0)              // once
//	plan, err := script.Compile(policy)           // once for each policy
//	decide := script.Decide()                     // once
//	batch.Reset(names)
//	err = batch.Add(ops, plans, places, 0)        // for each group
//	reply := EVALSHA decide.SHA batch.Keys() batch.Args(0, time.Second)
//	err = batch.Read(reply)
//	err = batch.Explain(0, ops, plans, places, decisions) // for each group
//
// # Promises
//
// The scripts do the same steps as package limit, including returns and changed limits. Time is in
// whole microseconds: the server's time, or the time in the call. If all times are whole
// microseconds, the decisions are those of store/memory, with RetryAfter and ResetAfter rounded up to
// the next microsecond. Several versions of a limit share a state as in package limit, without
// rounding.
//
// A call decides its groups in order, and each group sees the effect of earlier groups. The script
// decides everything before its first write, so a server without free memory refuses the whole call.
//
// The script writes counted refused attempts, and the cleanup of expired states. A Peek never writes,
// so it does not clean up a state; store/memory may do so. A Refund writes only if units come back.
//
// # Bounds
//
// The server is Redis 6.2 or later, or Valkey (PXAT, KEEPTTL; tested with 7.0).
//
// Lua's numbers are exact below 2^53. The interval Per/Count of a bucket is num/den microseconds in
// lowest terms. A bucket fits if Burst x den, and the units within MaxWait x den, stay below 2^52,
// and if Count and Per stay below 2^51. So every rate of up to 2,000,000 units in a period of whole
// microseconds fits with a Burst of Count. 100,000,000 units a second also fit. The periods of
// windows and bans must be whole microseconds. A sliding window of N sub-windows counts up to
// 2^51/(N+1) units. A log has up to MaxLogCount units. The error of Compile names the nearest policy
// that fits. Times end in 2112.
//
// # Keys
//
// Every name begins with "hg3:", the version of the stored form. The rest is a digest of the key,
// the window's number, and the limit's algorithm and period. Limits that differ in one of them are
// counted separately. A state is one string, which lua/*.lua describe. A log of more than about a
// hundred entries also has a list, with a name that ends in ":l". A returned receipt leaves a note,
// with a name that ends in ":r" and its nonce. All names of a key have the same hash tag. Each write
// sets a time to live.
//
// The call declares all names, with one exception: a log with a lowered limit may still have a list.
// The script derives the name of that list from the name of the state. Both are in the same slot.
//
// # The call
//
// Query and reply are one string each. The reply has little-endian doubles: first the time, and
// then for each Op the results of Lua's settle functions. The results are the counts before the Op.
// In the client, Explain computes the decision from these counts, with the same arithmetic. Groups of
// one Take of a bucket with a whole interval are encoded as runs. A few lines of lua/decide.lua
// decide runs. lua/group.lua decides all other groups; a call makes its functions only when needed.
package script
