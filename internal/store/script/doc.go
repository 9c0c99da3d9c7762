// Package script is what the Lua scripts of the Redis store read and write: the
// scripts, and the pure encoding and decoding of their calls. It does no I/O.
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
// # What the scripts promise
//
// The scripts are twins of package limit's steps, of their returns and of what happens
// to a state when its limit changes. Time is whole microseconds: the server's, or one
// that is sent along. Where all times are whole microseconds, decisions are those of
// store/memory, RetryAfter and ResetAfter rounded up to the next microsecond. Several
// versions of a limit share a state as package limit has it, without rounding.
//
// A call decides its groups in order, and each sees what those before it have left. All
// is decided before anything is written: a server that is full refuses the whole call.
//
// What is counted when nothing is taken is written too, and so is a state that has
// ended; a look never writes. So a look leaves alone what it would tidy, where memory
// may tidy it.
//
// # Bounds
//
// The server is Redis 6.2 or later, or Valkey (PXAT, KEEPTTL; tested with 7.0).
//
// Lua's numbers are exact below 2^53. A bucket fits when Burst, and the units that
// MaxWait covers, times den stay below 2^52; the interval Per/Count is num/den
// microseconds in lowest terms. Count and Per stay below 2^51. So every rate of up to 2,000,000 per any
// period of whole microseconds fits with Burst at Count, and 100,000,000 a second does.
// The other windows want whole microseconds. A sliding window of N sub-windows counts
// up to 2^51/(N+1) units; a log keeps up to MaxLogCount. Compile names the nearest
// policy that fits. Times end in 2112.
//
// # Keys
//
// Every name begins with "hg3:", the version of the form of states, and is made of a
// digest of the key, the window's number, and the algorithm and the period of the limit:
// limits that differ in one of these count apart. A state is one string (lua/*.lua
// say which); a log of more than a hundred or so entries has a list beside it, whose
// name ends in ":l"; a receipt that was returned leaves a note, whose name ends in ":r"
// and its nonce. All of a key's names have one hash tag. Each write gives a time to
// live. Names are declared, but for the list of a log whose limit was lowered to one
// that needs none: its name is worked out from the state's, in the same slot.
//
// # The call
//
// What is asked travels as one string, and comes back as one: doubles, little-endian,
// the time first and then for each Op what lua's settle functions say, which is what
// was counted before it and not what follows from it: that is worked out by Explain,
// off the server, by the same arithmetic. Groups of one Take of a bucket with a whole
// interval are told as runs, which are decided by the few lines of lua/decide.lua; all
// else is decided by lua/group.lua, whose functions are made when they are needed.
package script
