//go:build !race

package memory

// Raced says that the race detector watches.
const Raced = false
