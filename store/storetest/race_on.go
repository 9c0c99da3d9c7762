//go:build race

package storetest

// rounds is how many requests each named pair of versions gets; see Rounds. The race
// detector makes them ten times as slow, and one goroutine sends them one by one, so
// an eighth of them runs.
const rounds = 200
