// Package app builds a running instance from its components: configuration, store, report,
// guard, proxy and admin servers.
//
// cmd/headgate parses flags and handles signals; app connects the components. Tests and the
// demo listen on port 0 and read the actual ports from Instance.Addresses.
package app
