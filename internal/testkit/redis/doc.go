// Package redis starts real Redis servers for tests, on free ports of loopback,
// and stops them with the test: single ones (Start, StartTLS, StartACL), a cluster
// (StartCluster), a master with replicas and sentinels (StartSentinel).
//
// A Server can be paused, killed and started again on its port. A Cluster can lose
// nodes and move slots, all the way or half of it. No server outlives the process
// that has started it, even if that is killed.
//
// Everything that waits has a deadline and fails the test at it. What is missing
// on the machine fails the test too: nothing is skipped.
package redis
