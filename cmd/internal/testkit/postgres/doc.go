// Package postgres starts real PostgreSQL servers for tests. Each server has a cluster in a folder of its own, on a
// free port of loopback and a socket in its folder, and ends with the test.
//
// A Server can be paused, killed, and restarted on its port with its data. Clients connect to it over TCP with a
// password, directly or through links that can fail (see package network). No server outlives the process that started
// it, even if that process is killed.
//
// PostgreSQL does not run as root: a test that runs as root starts it as the user postgres. Every wait has a timeout
// that fails the test. A program that is not installed fails the test too: no test is skipped.
package postgres
