//go:build race

package httppace_test

// raceDetector says that the race detector is on: it makes sync.Pool drop what it
// holds at random, and with it come allocations.
const raceDetector = true
