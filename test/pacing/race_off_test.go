//go:build !race

package pacing

// raceDetector says that the race detector is on: it makes everything ten times as slow.
const raceDetector = false
