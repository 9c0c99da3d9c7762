// Package wheel holds what waits for its departure: up to a million entries, one
// timer for all of them, and no goroutine for any.
//
//	Timers.Wait    blocks one request until its departure; start here
//	Timers         entries with a callback, on the machine's monotonic clock
//	Wheel          the pure part: time is an argument; for simulations and tests
//
// A Wheel counts in ticks of a millisecond. Its levels are the digits of a tick's
// number to the base of 64, as on a clock with eight hands: an entry hangs at the
// highest digit in which its tick differs from the present one, and moves down
// when the time reaches that digit. Adding and removing are a few instructions,
// whether the departure is a millisecond ahead or a year, and whether one entry
// waits or a million; a word of bits for each level says where the next one is, so
// that empty slots cost nothing, however long they are.
//
// What fires, fires at the first whole tick at or after its departure: never
// early, and less than a millisecond late but for the scheduling of goroutines.
// Entries of one tick fire in the order in which they were added.
package wheel
