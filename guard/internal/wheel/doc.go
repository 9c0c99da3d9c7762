// Package wheel holds entries until their departures: up to a million entries with one timer for
// all of them, and without a goroutine for each.
//
//	Timers    entries with a callback, on the machine's monotonic clock; start here
//	Wheel     the pure part: time is an argument; for simulations and tests
//
// A Wheel counts in ticks of a millisecond. Entries that depart within four seconds are in a
// ring with a slot for each tick. Later entries are in levels. The levels are the digits of a
// tick's number in base 64. An entry is at the highest digit in which its tick differs from the
// end of the ring. When the end of the ring reaches that slot, the entry moves to a lower level.
// Adding and removing take a few instructions, whether the departure is a millisecond or a year
// ahead, and whether one entry waits or a million. Bit sets show which slots are in use, so
// empty slots cost nothing.
//
// An entry fires at the first whole tick at or after its departure: never early, and less than a
// millisecond late, plus the delay of goroutine scheduling. Entries move down seconds before
// they are due, a few hundred at a time, and due entries go first. Entries of one tick fire in
// the order in which they were added.
package wheel
