//go:build race

package limit

// raced says that the race detector watches: it makes everything ten times as slow, and
// finds nothing in arithmetic, of which less is tried then.
const raced = true
