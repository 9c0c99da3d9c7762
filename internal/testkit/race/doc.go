// Package race reports whether the race detector is on (On). The detector makes code about ten
// times slower, and makes sync.Pool drop entries at random. It finds nothing in code of one
// goroutine. With the detector, tests of arithmetic try fewer inputs, and no test counts
// allocations. `make test` runs all tests without the detector, and CI runs them with it too.
package race
