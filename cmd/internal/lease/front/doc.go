// Package front serves headgate.lease.v1.Leases: holders report what they want of resources, and get leases. One lock guards
// the state machine of internal/lease/state. It also has the side of a server below another server: see uplink.go.
//
// A stream may have several holders. What a stream has not read is kept once for each claim, because only the newest lease of
// a claim matters. Messages are read and written without generated types; FuzzReport compares both.
package front
