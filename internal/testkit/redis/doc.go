// Package redis starts real Redis servers for tests, on free ports of loopback. It starts
// single servers (Start, StartTLS, StartACL), a cluster (StartCluster), and a master with
// replicas and sentinels (StartSentinel). The servers end with the test.
//
// A Server can be paused, killed, and restarted on its port. A Cluster can lose nodes and move
// slots completely or partially. No server outlives the process that started it, even if
// that process is killed.
//
// Every wait has a timeout that fails the test. A program that is not installed fails the
// test too: no test is skipped.
package redis
