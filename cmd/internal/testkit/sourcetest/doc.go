// Package sourcetest is the contract of source.Writer as a suite of tests. Run it on a real server:
//
//	sourcetest.Run(t, server)
//
// The server makes a Place for each test, which is an empty prefix or schema. Stories that kill the server run
// last and alone.
package sourcetest
