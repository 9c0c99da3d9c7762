//go:build !race

package region_test

// raceDetector says that the race detector is on: it counts allocations of its own.
const raceDetector = false
