//go:build race

package pace_test

// raced says whether the race detector is on, which makes all some ten times as slow.
const raced = true
