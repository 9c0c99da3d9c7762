// Package script is what the Lua scripts of the Redis store read and write: pure
// encoding and decoding, no I/O.
package script
