//go:build !race

package storetest

// rounds is how many requests each named pair of versions gets; see Rounds.
const rounds = 1600
