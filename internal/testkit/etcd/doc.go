// Package etcd starts real etcd servers for tests. Each server is a cluster of one member on
// free ports of loopback, and ends with the test.
//
// A Server can be paused, killed, and restarted on its ports, with or without its data.
// Clients connect to the server directly, or through links that can fail (see package
// network). No server outlives the process that started it, even if that process is killed.
//
// Every wait has a timeout that fails the test. A program that is not installed fails the
// test too: no test is skipped.
package etcd
