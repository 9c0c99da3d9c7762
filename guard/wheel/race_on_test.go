//go:build race

package wheel

// raceDetector says that the race detector is on: it makes sync.Pool drop what it
// holds at random.
const raceDetector = true
