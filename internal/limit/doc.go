// Package limit implements the five algorithms, and bans, as pure steps over states that
// the caller keeps.
//
//	plan, err := limit.Compile(policy)         // once
//	plan.JudgeCell(&cell, now, cost, mode, &draw)   // decide, take nothing
//	plan.TakeCell(&cell, &draw)                // count it
//	plan.Explain(&draw, &decision)             // write the Decision
//
// Judging and taking are separate because several limits of a request are taken together or
// not at all. A store judges all of them, and then takes all or none. Explain needs no
// state, so a store calls it after it releases its lock. A token bucket, a leaky bucket,
// a fixed window and a ban use a Cell. The other two use a Log and
// Windows. The entries of a Log and the counters of Windows are in memory that the store
// owns. Every algorithm except the ban can return taken units. The functions whose names begin
// with Refund give units back without a receipt.
//
// Policies of one Family (algorithm and period) count in one state, in any order. JudgeOf
// judges a Cell whose policy of record is another policy. TakeOf makes the policy that takes
// the policy of record. A Log needs neither. Windows keep a ring for each number of
// sub-windows. docs/algorithms.md states what two versions of a limit admit together, and
// proves it.
//
// This package reads no clock, does no I/O, allocates nothing and takes no lock. Time is an
// argument, and the caller holds the lock of the state. docs/algorithms.md derives each
// algorithm and its bound. Package internal/limit/twin has slow models of the same definitions, and
// the tests compare the two.
package limit
