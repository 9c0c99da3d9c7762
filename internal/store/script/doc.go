// Package script has the Lua scripts of the Redis store, and the encoding and decoding of their
// calls. The package is pure: it does no I/O.
//
//	names, err := script.NewNames(0)              // once
//	plan, err := script.Compile(policy)           // once a policy
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
// whole microseconds: the server's time, or one from the call. If all times are whole microseconds,
// the decisions are those of store/memory, with RetryAfter and ResetAfter rounded up to the next
// microsecond. Several versions of a limit share a state as in package limit, without rounding.
//
// A call decides its groups in order, and each group sees the effect of earlier ones. Everything is
// decided before the first write: a full server refuses the whole call.
//
// Counted refused attempts are written, and so is an expired state. A Peek never writes, so it does not
// clean up a state; store/memory may do so.
//
// # Bounds
//
// The server is Redis 6.2 or later, or Valkey (PXAT, KEEPTTL; tested with 7.0).
//
// Lua's numbers are exact below 2^53. The interval Per/Count of a bucket is num/den microseconds in
// lowest terms. A bucket fits when Burst x den, and the units within MaxWait x den, stay below
// 2^52. Count and Per stay below 2^51. So every rate of up to 2,000,000 in any period of whole
// microseconds fits with a Burst of Count, and 100,000,000 a second fits too. Other windows need
// whole microseconds. A sliding window of N sub-windows counts up to 2^51/(N+1) units. A log keeps
// up to MaxLogCount units. Compile names the nearest policy that fits. Times end in 2112.
//
// # Keys
//
// Every name begins with "hg3:", the version of the form of states. The rest is a digest of the
// key, the window's number, and the limit's algorithm and period. Limits that differ in one of
// these are counted separately. A state is one string (lua/*.lua describe it). A log of more than
// about a hundred entries also has a list, with a name that ends in ":l". A returned receipt leaves
// a note, with a name that ends in ":r" and its nonce. All names of a key have one hash tag. Each
// write sets a time to live.
//
// The call declares all names, with one exception: a log whose limit was lowered may still have a
// list. The script derives the name of that list from the state's name, in the same slot.
//
// # The call
//
// Query and reply are one string each. The reply has little-endian doubles: first the time, and
// then for each Op the results of Lua's settle functions. These are the counts before the Op.
// Explain computes the decision from them in the client, with the same arithmetic. Groups of one
// Take of a bucket with a whole interval are encoded as runs, which a few lines of lua/decide.lua
// decide. lua/group.lua decides all other groups; its functions are made only when needed.
package script
