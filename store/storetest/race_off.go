//go:build !race

package storetest

// rounds is the number of requests for each named pair of versions; see Rounds.
const rounds = 1600
