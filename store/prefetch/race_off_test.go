//go:build !race

package prefetch_test

// raceDetector says that sync.Pool drops some of what it is given, on purpose.
const raceDetector = false
