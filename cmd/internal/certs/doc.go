// Package certs serves TLS certificates whose files may be replaced at any time. Start with
// NewServer for connections from clients, and with NewClient for connections to an upstream.
//
// Reload reads the files again. Without Reload, a handshake checks at most once a second
// whether a file has changed. A change is another time, size or file, so the swapped
// symbolic links of Kubernetes are also noticed. If a file cannot be read or does not match,
// the old certificate stays in use and the log gives the cause. Open connections keep their
// certificates. Sessions from removed authorities are not resumed.
package certs
