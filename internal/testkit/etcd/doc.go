// Package etcd starts real etcd servers for tests, of one member each, on free ports
// of loopback, and stops them with the test.
//
// A Server can be paused, killed, and started again on its ports, with its data or
// without. Its clients reach it directly, or each by a link of its own that can fail,
// see package network. No server outlives the process that has started it, even if
// that is killed.
//
// Everything that waits has a deadline and fails the test at it. What is missing
// on the machine fails the test too: nothing is skipped.
package etcd
