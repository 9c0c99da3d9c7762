//go:build !race

package proxy

// raceDetector says that the race detector is on: it makes sync.Pool drop what it
// holds at random, and everything ten times as slow.
const raceDetector = false
