// Package demo shows a proxy at work: a small upstream, clients of different
// demand, and a table of who gets what. cmd/headgate puts a real proxy between
// the two; everything goes over real sockets of this machine alone.
package demo
