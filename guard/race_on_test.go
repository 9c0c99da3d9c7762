//go:build race

package guard

// Raced says that the race detector watches: it makes everything ten times as slow, and
// finds nothing in what one goroutine does, of which less is tried then. The tests from
// outside of the package see it too.
const Raced = true
