// Package memcached starts real Memcached servers for tests, on free ports of
// loopback, kills and pauses them on demand, and stops them with the test.
package memcached
