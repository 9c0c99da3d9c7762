// Package certs keeps TLS certificates that may be replaced while they are
// served. Begin with NewServer for the side that clients connect to, and with
// NewClient for the side towards an upstream.
//
// Files are read again by Reload, and without it when a handshake finds, at most
// once a second, that one of them has changed: by another time, size or file, so
// that the exchanged symbolic links of Kubernetes are noticed too. What cannot be
// read or does not fit together leaves the old certificate in place and is told
// in the log. Connections keep what they began with; sessions that were begun
// under authorities that are no longer there are not resumed.
package certs
