// Package refusals remembers, in a fixed amount of memory, the counters that are above their limits until
// their windows end. A refusal that is remembered needs no query to a store. The package knows no store
// and no clock: the time is an argument, and goes on at the same speed as that of the store.
package refusals
