//go:build race

package fairshare

// raced says that the race detector watches: simulations of one goroutine are made
// shorter then, as there is nothing to find in them.
const raced = true
