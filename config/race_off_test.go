//go:build !race

package config

// raced says that the race detector watches.
const raced = false
