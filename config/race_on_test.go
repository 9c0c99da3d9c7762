//go:build race

package config

// raced says that the race detector watches: it makes everything ten times as slow, and
// finds nothing in what one goroutine does, of which less is tried then.
const raced = true
