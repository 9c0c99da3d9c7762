// Package wheel holds what waits for its departure: up to a million entries, one
// timer for all of them, and no goroutine for any.
//
//	Timers    entries with a callback, on the machine's monotonic clock; start here
//	Wheel     the pure part: time is an argument; for simulations and tests
//
// A Wheel counts in ticks of a millisecond. What departs within four seconds hangs
// in a ring with a slot for each tick. What departs later hangs in levels, which
// are the digits of a tick's number to the base of 64, as the hands of a clock are
// of the time: each entry at the highest digit in which its tick differs from the
// ring's end, from where it moves down when the ring's end comes there. Adding and
// removing are a few instructions, whether the departure is a millisecond ahead or
// a year, and whether one entry waits or a million. Words of bits say which slots
// are in use, so that empty ones cost nothing, however long they are.
//
// What fires, fires at the first whole tick at or after its departure: never
// early, and less than a millisecond late but for the scheduling of goroutines.
// Entries that move down do so seconds before they are due, a few hundred at a
// time, and what is due goes first. Entries of one tick fire in the order in which
// they were added.
package wheel
