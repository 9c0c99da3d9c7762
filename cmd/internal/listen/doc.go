// Package listen opens the sockets that clients connect to: TCP ports, unix sockets, and
// inherited sockets (systemd's socket activation). Start with Open.
//
// A connection passes three layers before the server. TCP keep-alives detect dead peers. The
// connection limit bounds the number of open connections: at the limit Accept pauses, and
// new connections wait in the kernel's queue. The PROXY protocol (versions 1 and 2) names
// the client behind a balancer. Only configured balancers may send it. The server itself
// handles TLS, after these layers.
//
// An inherited socket outlives the process. A new process serves the same socket while the
// old process finishes its requests, so no connection is refused in between.
package listen
