// Package redis starts real Redis servers for tests, on free ports of loopback,
// and stops them with the test.
package redis
