// Package queue decides which request goes when, among the requests that wait for one
// key of one limit. It is pure: time is an argument, and nothing is locked.
//
// A Queue has two lists: the waiters in their order, and the departures that a store
// has booked, as Slots. A slot of n units is n units in a row, each with a time. The
// first waiter goes when the first units, as many as its cost, have come; the next
// waiter takes the units after them. A waiter that leaves is unlinked: its units go
// to the waiter behind it, and each later waiter moves up. The units at the end then
// have no waiter. They are spare: TakeTail gives a spare slot that may go back to the
// store, and a request that arrives takes spare units before it books.
//
// Guarantees, for waiters of any cost:
//
//   - No waiter goes before the units that it takes have come: what leaves the queue by
//     any time is at most what the store has booked until then.
//   - A waiter never goes later than the departure that was promised when it joined.
//   - While a request waits, no unit passes unused: each goes to the first waiter.
//   - Waiters go in the order of their departures, which is that of their arrival.
//
// Add, Leave, Pop and TakeTail take constant time for costs of 1. For larger costs they
// take as many steps as slots make up one cost.
package queue
