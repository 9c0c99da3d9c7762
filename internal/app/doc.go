// Package app wires the parts into a running instance: configuration, store,
// report, guard, front, and the servers that tell of them.
//
// cmd/headgate knows flags and signals, app knows wiring. Start gives back the
// addresses that were bound, so that tests and the demo ask for port 0; Stop may
// be called any number of times and ends within the configured time.
package app
