//go:build !race

package limit

// raced says that the race detector watches.
const raced = false
