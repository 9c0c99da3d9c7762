// Package order brings the lines of access logs into the order of their arrivals. A server writes a line when a request ends, so
// arrivals in a log go back by the length of the requests and by the buffers of the server.
//
// Lines wait in a bucket for each second, until the newest line is further ahead than the window. Time and memory of a line do not
// depend on the length of the window. The package reads no clock.
package order
