// Package leases serves headgate.lease.v1 with the real state machine of internal/lease/state, for the tests of
// holders. It works in a bubble of synctest, over connections in memory.
package leases
