// Package tally counts the requests of a replay by key and over time, in a bounded amount of memory. Equal requests give equal counts:
// the package reads no clock and uses no random number.
package tally
