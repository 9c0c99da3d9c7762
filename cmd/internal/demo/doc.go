// Package demo shows fair share with a test service, clients whose demand changes, and a
// table of each client's share. cmd/headgate puts a real proxy between the clients and the
// service. All connections are real sockets of this machine. The table has the values that
// the proxy's admin listener reports.
package demo
