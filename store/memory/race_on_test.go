//go:build race

package memory

// Raced says that the race detector watches: it makes sync.Pool drop what it holds at
// random, and everything ten times as slow. The tests from outside of the package see it too.
const Raced = true
