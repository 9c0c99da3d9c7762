// Package limit is the arithmetic of the five algorithms, and of bans: pure steps
// over states that somebody else keeps.
//
//	plan, err := limit.Compile(policy)         // once
//	plan.JudgeCell(&cell, now, cost, mode, &draw)   // decide, take nothing
//	plan.TakeCell(&cell, &draw)                // count it
//	plan.Explain(&draw, &decision)             // say what is left
//
// Judging and taking are apart because several limits are all or nothing: a store
// judges them all, then takes all or none. Explain is apart from both because it
// needs no state: a store calls it after it has given up its lock. The token
// bucket, the leaky bucket, the fixed window and the ban are a Cell; a sliding log
// is a Log, a sliding window Windows, and their words and counters lie in memory
// that the store owns. Every algorithm except the ban has a way to return what was
// taken.
//
// Policies of one Family (algorithm and period) count in one state, in any order:
// JudgeOf judges a Cell whose policy of record is another, and TakeOf makes the policy
// that takes the one of record. A Log needs neither, and Windows keep a ring for each
// number of sub-windows. docs/algorithms.md states what two versions of a limit admit
// together, and proves it.
//
// Nothing here reads a clock, does I/O, allocates or locks: time is an argument,
// and whoever holds the state holds its lock. docs/algorithms.md derives each
// algorithm, with its bound. Package limit/twin holds the same definitions
// without haste, and the tests keep the two equal.
package limit
