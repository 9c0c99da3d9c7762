//go:build race

package fairshare

// raced says that the race detector watches, which makes everything ten times as slow:
// simulations of one goroutine are made shorter or fewer then, as there is nothing to find in
// them, and what goes on at once is repeated less often.
const raced = true
