//go:build race

package main

// raced says that the race detector watches: it makes everything several times as slow,
// so that fewer events are sent.
const raced = true
