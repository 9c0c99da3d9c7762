// Package decisions starts the gRPC service of headgate server on a real socket, for the tests of its clients.
package decisions
