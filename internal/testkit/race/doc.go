// Package race tells tests whether the race detector watches (On). It makes everything
// about ten times as slow, has sync.Pool drop what it holds at random, and finds nothing
// in what one goroutine does: tests of arithmetic try less then, and none counts allocations.
package race
