//go:build !race

package guard

// Raced says that the race detector watches.
const Raced = false
