// Package acceptance drives the built binary as a user does: command lines, files,
// signals and real sockets. Its tests use what is on the machine (wrk, curl, h2load,
// nghttp, chromium); make deps installs what is missing.
package acceptance
