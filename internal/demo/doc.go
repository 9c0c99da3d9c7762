// Package demo shows fair share at work: a small upstream, clients whose demand
// changes from act to act, and a table of who gets what. cmd/headgate puts a real
// proxy between the two; everything goes over real sockets of this machine alone,
// and the table is made of what the proxy tells at its admin address.
package demo
