// Package memcached starts real Memcached servers for tests, on free ports of loopback. Tests
// can kill and pause the servers. The servers end with the test.
package memcached
