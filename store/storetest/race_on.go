//go:build race

package storetest

// rounds is the number of requests for each named pair of versions; see Rounds. The race
// detector slows one goroutine down tenfold, so an eighth of the requests runs.
const rounds = 200
