//go:build race

package limiter

// raced reports that the race detector is there.
const raced = true
