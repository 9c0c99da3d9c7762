// Package listen opens the sockets that clients connect to: TCP ports, unix
// sockets, and sockets that the process was started with (systemd's socket
// activation). Begin with Open.
//
// A connection passes three layers before its server sees it. TCP keepalive finds
// peers that went away without a word. The connection limit lets no more than a
// number of connections be open: at the limit, Accept pauses, and further ones
// wait in the kernel's queue. The PROXY protocol (versions 1 and 2) gives the
// address of the client behind a balancer; it is read from balancers that the
// configuration names, and from nobody else. TLS comes after these and is the
// server's.
//
// A socket that the process was started with outlives it: a new process serves
// the same socket while the old one finishes its requests, and no connection is
// refused in between.
package listen
