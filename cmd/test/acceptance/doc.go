// Package acceptance tests the built binary as a user runs it: command lines, files, signals and
// real sockets. The tests use programs of the machine (wrk, curl, h2load, nghttp, chromium);
// make deps installs the missing ones.
package acceptance
