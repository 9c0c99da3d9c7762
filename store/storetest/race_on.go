//go:build race

package storetest

// raced reports whether the race detector is on.
const raced = true
