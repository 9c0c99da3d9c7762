//go:build race

package schedule

// inputs is how many random inputs each property is tried on. The race detector finds
// nothing in arithmetic, and makes it ten times as slow.
const inputs = 5_000
